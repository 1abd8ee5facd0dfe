#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help, completion and what a wrong command line gets.
. "$(dirname "$0")/lib.sh"

expect 0 overview $AEGIS --help
answers "aegis run models/demo"
for command in run chat pack plan show verify cache tokenize template logits eval bench doctor version completion; do
    expect 0 "help $command" $AEGIS help $command
    answers "usage: aegis $command"
    expect 0 "$command -h" $AEGIS $command -h
    [ "$(wc -l < stdout.txt)" -le 50 ] || fail "$command -h is longer than a screen"
done
expect 0 version $AEGIS version
answers "aegis 0."
expect 0 "version --json" $AEGIS version --json
json "j['version'].startswith('0.')"

expect 2 "no command" $AEGIS
silent
expect 2 "unknown command" $AEGIS pln x
says "did you mean plan?"
expect 2 "a model in place of a command" $AEGIS ./lib.sh -p hi
says "for a model: aegis run ./lib.sh"
expect 2 "a model without a name" $AEGIS run "" -p hi
says "is empty"
expect 2 "unknown option" $AEGIS run x --memroy 1GiB
says "did you mean --memory?"
expect 2 "missing value" $AEGIS run x --memory
says "needs a value"
expect 2 "bad size" $AEGIS plan x --memory 12parsecs
says "12parsecs"
expect 2 "no model" $AEGIS run
for later in serve top; do
    expect 2 "$later" $AEGIS $later
    says "not in this version"
done
for later in "--image f" "--mtp 1" "--gpu-memory 1GiB" "--kv-dir d" "--parallel 2" "--kv-type q8_0" "--kv-type bf16"; do
    # shellcheck disable=SC2086
    expect 2 "$later" $AEGIS run x $later
    says "not in this version"
done
expect 6 "cuda" $AEGIS run x --device cuda
says "not in this version"

expect 4 "missing model" $AEGIS run "$work/nowhere" -p hi
says "nowhere"
mkdir empty
expect 4 "empty folder" $AEGIS run empty -p hi
says "neither a store"
touch file.gguf
expect 4 "gguf" $AEGIS show file.gguf
expect 2 "missing prompt file" $AEGIS run x -f "$work/nofile"
says "nofile"
expect 2 "empty prompt" $AEGIS run x -p ""

expect 0 "bash completion" $AEGIS completion bash
bash -n stdout.txt || fail "the bash completion does not parse"
. ./stdout.txt
COMP_WORDS=(aegis run --mem) COMP_CWORD=2
_aegis
case " ${COMPREPLY[*]} " in *" --memory "*) ;; *) fail "completion of --mem: ${COMPREPLY[*]}" ;; esac
COMP_WORDS=(aegis pl) COMP_CWORD=1
_aegis
[ "${COMPREPLY[*]}" = plan ] || fail "completion of pl: ${COMPREPLY[*]}"
expect 0 "zsh completion" $AEGIS completion zsh
expect 0 "fish completion" $AEGIS completion fish
expect 2 "unknown shell" $AEGIS completion tcsh

if [ -w /dev/full ]; then
    $AEGIS --help > /dev/full 2> stderr.txt
    [ $? -eq 5 ] || fail "a full standard output must give exit code 5"
fi
finish
