# SPDX-License-Identifier: Apache-2.0
# A short front for CMake + Ninja; `make help` lists the targets.
BUILD ?= build
JOBS  ?= $(shell nproc)
DEMO_MEMORY ?= 32MiB
DEMO_PROMPT ?= What is the capital of France?

all: ## build build/aegis (release)
	@test -f $(BUILD)/build.ninja || cmake --preset release -B $(BUILD)
	@cmake --build $(BUILD) -j $(JOBS)

demo: deps-build all ## install what is missing, build, show the plan and answer one question
	$(BUILD)/aegis plan models/demo --memory $(DEMO_MEMORY)
	$(BUILD)/aegis run models/demo --memory $(DEMO_MEMORY) -p "$(DEMO_PROMPT)"

test: deps-test all ## install what is missing, build and run every test
	@tools/run-tests $(BUILD)

check-more: deps-more ## sanitizers, clang, arm64 under qemu, fuzzers, oracles (about half an hour)
	@tools/check-more

bench: all ## kernel and decode benchmarks of this machine, as rows for docs/results
	@tools/run-bench $(BUILD)

deps-build deps-test deps-more: deps-%:
	@tools/install-deps $*

clean: ## remove every build folder
	rm -rf build build-*

help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.NOTPARALLEL:
.PHONY: all demo test check-more bench deps-build deps-test deps-more clean help
