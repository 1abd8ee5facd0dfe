# SPDX-License-Identifier: Apache-2.0
# A short front for CMake + Ninja; `make help` lists the targets.
BUILD ?= build
JOBS  ?= $(shell nproc)
DEMO_MEMORY ?= 32MiB
DEMO_PROMPT ?= What is the capital of France?

all: ## build build/aegis (release)
	@test -f $(BUILD)/build.ninja || cmake --preset release -B $(BUILD)
	@cmake --build $(BUILD) -j $(JOBS) --target aegis

demo: deps-build ## install what is missing, build, show the plan and answer one question
	@$(MAKE) --no-print-directory all
	$(BUILD)/aegis plan models/demo --memory $(DEMO_MEMORY)
	$(BUILD)/aegis run models/demo --memory $(DEMO_MEMORY) -p "$(DEMO_PROMPT)"

test: deps-test ## install what is missing, build and run every test
	@$(MAKE) --no-print-directory build-tests
	@tools/run-tests $(BUILD)

# Configured anew: the libraries of the tests may have been installed since the last time.
build-tests:
	@cmake --preset release -B $(BUILD)
	@cmake --build $(BUILD) -j $(JOBS)

check-more: deps-more ## sanitizers, clang, arm64 under qemu, fuzzers, oracles (about half an hour)
	@tools/check-more

bench: deps-test build-tests ## kernel and decode benchmarks of this machine, as rows for docs/results
	@tools/run-bench $(BUILD)

deps-build deps-test deps-more: deps-%:
	@tools/install-deps $*

clean: ## remove every build folder
	rm -rf build build-*

help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.NOTPARALLEL:
.PHONY: all demo test build-tests check-more bench deps-build deps-test deps-more clean help
