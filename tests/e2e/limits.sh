#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is too long, too large, meaningless, closed, interrupted or not ours to replace.
. "$(dirname "$0")/lib.sh"
model=$(store) || exit 1
small=$(small_budget "$model") || exit 1
ask="What is the capital of France?"
sanitized=$([ "$small" -gt $((50 * 2**20)) ] && echo yes)

# --- where logits go ---
expect 2 "a device is not replaced" $AEGIS logits "$model" --ids 1,2 -o /dev/null
says "not a regular file"
[ -c /dev/null ] || fail "/dev/null was replaced"
mkfifo pipe && ln -s nowhere.safetensors dangling && mkdir folder
for output in pipe dangling folder; do
    expect 2 "output $output" $AEGIS logits "$model" --ids 1,2 -o $output
    says "not a regular file"
done
[ -p pipe ] && [ -L dangling ] && [ ! -e nowhere.safetensors ] || fail "an output that was refused is changed"
echo old > target && ln -s target link
expect 0 "a link leads to its file" $AEGIS logits "$model" --ids 1,2 -o link
[ -L link ] && [ "$(wc -c < target)" -gt 1000 ] || fail "the link should stay and its target hold the logits"
expect 0 "an old file is replaced" $AEGIS logits "$model" --ids 1,2 -o target
[ -z "$(find . -name '*partial*')" ] || fail "partial files are left"

expect 5 "output in no folder" $AEGIS logits nomodel --ids 1,2 -o nofolder/x # before anything else
says "output nofolder/x: No such file"

# --- too long for the context ---
seq -s ' ' 1 3000 > ids.txt
expect 2 "ids beyond the context" $AEGIS logits "$model" --ids-file ids.txt -c 100 -o x
says "more than 100 token ids do not fit the context"
yes '5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5' | head -n 400000 > many.txt
expect 2 "millions of ids" $AEGIS logits "$model" --ids-file many.txt --memory "$small" -o x
says "token ids do not fit"
expect 2 "millions of ids in eval" $AEGIS eval "$model" --ids-file many.txt --memory "$small"
says "token ids do not fit"
expect 2 "a text far beyond the context" $AEGIS logits "$model" -f many.txt -c 64 -o x
head -c 100000 many.txt > long.txt
for c in 64 1024 8192; do
    expect 2 "a prompt beyond a context of $c" $AEGIS run "$model" -f long.txt -c $c
    says "with -c"
    expect 2 "a raw prompt beyond a context of $c" $AEGIS run "$model" -f long.txt -c $c --raw
    says "-c"
done
input=long.txt expect 2 "standard input beyond the context" $AEGIS run "$model" -c 64

# --- tokenize and template have no plan, but a budget ---
cat many.txt many.txt > more.txt
for mib in 24 32; do
    [ -z "$sanitized" ] || break
    expect 2 "a text beyond $mib MiB" $AEGIS tokenize "$model" -f more.txt --memory ${mib}MiB
    says "--memory"
done
expect 3 "less than the tokenizer" $AEGIS tokenize "$model" -p hi --memory 1MiB
expect 0 "tokenize in a budget" $AEGIS tokenize "$model" -f long.txt --memory "$small"
printf '[{"role": "user", "content": "%s"}]' "$(tr '\n' ' ' < more.txt | head -c 8000000)" > messages.json
[ -n "$sanitized" ] || expect 2 "messages beyond the budget" $AEGIS template "$model" -f messages.json --memory 24MiB

# --- nothing to score is known before anything is computed ---
for options in "-c 1" "-c 1 --skip 5" "--skip 15 -c 16" "--skip 4294967295 -c 16"; do
    # shellcheck disable=SC2086
    expect 2 "eval $options" $AEGIS eval nomodel --ids-file ids.txt $options
    says "nothing to score"
done
expect 2 "one id" $AEGIS eval "$model" --ids 7
says "nothing to score"
expect 0 "one scored token a window" $AEGIS eval "$model" --ids 7,8,9 -c 16 --skip 1

# --- meaningless together ---
expect 2 "bias outside the vocabulary" $AEGIS run "$model" -p hi --logit-bias 6144=1
says "--logit-bias"
expect 2 "raw with a system prompt" $AEGIS run "$model" -p hi --raw -sys Hello
says "--raw"
expect 2 "raw without thoughts" $AEGIS run "$model" -p hi --raw --no-think
says "--raw"
expect 0 "bits of a store" $AEGIS run "$model" -p "$ask" --no-think --temp 0 --expert-bits 3
says "is a store already; --expert-bits is ignored"
expect 0 "no reads" $AEGIS run "$model" -p "$ask" --no-think --temp 0 -n 2 --io null
says "meaningless"
expect 0 "more than the machine" $AEGIS plan "$model" --memory 900TiB
says "more than this m"
expect 2 "a rate is no part of something" $AEGIS run "$model" -p hi --io sim --sim-disk 50%
says "7GB/s"
for name in nofile folder; do
    for command in "run $model" "tokenize $model" "template $model" "eval $model" "logits $model -o x"; do
        # shellcheck disable=SC2086
        expect 2 "$command -f $name" $AEGIS $command -f $name
        says "$name"
    done
done
expect 2 "--ids-file folder" $AEGIS logits "$model" --ids-file folder -o x

# --- closed files (an emulator opens files of its own in their place) ---
case $AEGIS in *" "*) ;; *)
expect 0 "standard input closed" bash -c "$AEGIS run '$model' -p '$ask' --no-think --temp 0 <&-"
answers "Paris"
expect 2 "a closed standard input is an empty prompt" bash -c "$AEGIS run '$model' <&-" # not the store's first file
says "is empty"
expect 0 "standard error closed" bash -c "$AEGIS run '$model' -p '$ask' --no-think --temp 0 --verbose 2>&-"
answers "Paris"
expect 5 "standard output closed" bash -c "$AEGIS run '$model' -p '$ask' --no-think --temp 0 >&-"
expect 0 "all but the answer closed" bash -c "$AEGIS logits '$model' --ids 1,2 -o closed.safetensors <&- >&- 2>&-"
cmp -s closed.safetensors target || fail "logits differ with closed files"
;; esac
$AEGIS verify "$model" > verify.txt 2>&1 || fail "a store was written to: $(cat verify.txt)"

# --- cache rm ---
mkdir -p cache/aegis/stores precious && echo keep > precious/file && echo '{}' > precious/manifest.json
ln -s "$work/precious" cache/aegis/stores/evil && ln -s "$work/gone" cache/aegis/stores/gone
expect 0 "rm of a link" $AEGIS cache rm evil
[ ! -L cache/aegis/stores/evil ] || fail "the link is left"
ln -s "$work/precious" cache/aegis/stores/evil
expect 0 "rm --all of links" $AEGIS cache rm --all
[ -z "$(find cache/aegis/stores -type l)" ] || fail "links are left"
[ -f precious/file ] && [ -f precious/manifest.json ] || fail "cache rm deleted what a link leads to"

# --- interrupts while a model opens (each command closes its engine once), and where nothing can be cancelled ---
for delay in 0.02 0.1 0.3; do
    for command in "bench $model -r 64 -tg 4000 -pp 64" "run $model -p Hello --ignore-eos --temp 0"; do
        # shellcheck disable=SC2086
        python3 - "$delay" $AEGIS $command << 'PY' || fail "SIGINT after $delay s: $command"
import signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
time.sleep(float(sys.argv[1]))
p.send_signal(signal.SIGINT)
err = p.communicate(timeout=60)[1]
if p.returncode not in (130, -signal.SIGINT):
    sys.exit('exit code %d: %s' % (p.returncode, err.decode()))
PY
    done
done
# A terminal that goes away while packing: what was written goes too. Packing takes a moment only, so it may end first.
python3 - $AEGIS pack "$demo" hungup << 'PY' || fail "SIGHUP while packing"
import os, shutil, signal, subprocess, sys, time
for attempt in range(5):
    shutil.rmtree('hungup', ignore_errors=True)
    p = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    while p.poll() is None and not os.path.exists('hungup.aegis-part'):
        time.sleep(0.001)
    p.send_signal(signal.SIGHUP)
    err = p.communicate(timeout=60)[1]
    if os.path.exists('hungup.aegis-part'):
        sys.exit('a part is left')
    if p.returncode == 129:
        sys.exit(0)
    if p.returncode != 0:
        sys.exit('exit code %d: %s' % (p.returncode, err.decode()))
print('packing was always faster than SIGHUP')
PY
case $AEGIS in *" "*) ;; *) # the limit would be the emulator's
expect 5 "a limit of file sizes" bash -c "ulimit -f 1000; $AEGIS pack '$demo' limited"
says "File too large"
[ ! -e limited.aegis-part ] || fail "a part is left"
;; esac
python3 - $AEGIS tokenize "$model" -f more.txt << 'PY' || fail "SIGINT during tokenize"
import signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
p.stdout.read(1)         # it writes to a pipe that nobody reads on: it would wait for ever
p.send_signal(signal.SIGINT)
sys.exit(0 if p.wait(timeout=20) == -signal.SIGINT else 'exit code %d' % p.returncode)
PY

# Telemetry that cannot be written is an error, after the answer.
expect 5 "telemetry on a full disk" $AEGIS run "$model" -p hello -n 4 --temp 0 --telemetry /dev/full
says "/dev/full"
finish
