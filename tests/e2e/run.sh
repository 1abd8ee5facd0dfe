#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One-shot answers, tokens, templates, logits, eval, bench.
. "$(dirname "$0")/lib.sh"
model=$(store) || exit 1
small=$(small_budget "$model") || exit 1
ask="What is the capital of France?"

expect 0 "greedy answer" $AEGIS run "$model" -p "$ask" --no-think --temp 0
[ "$out" = "The capital of France is Paris." ] || fail "greedy answer: $out"
[ -z "$err" ] || fail "an answer without --verbose says: $err"
expect 0 "without a command" $AEGIS -m "$model" -p "$ask" --no-think --temp 0 --memory "$small" --mlock
answers "Paris"
says "--mlock"
echo "$ask" > prompt.txt
input=prompt.txt expect 0 "piped prompt" $AEGIS run "$model" --no-think --temp 0
answers "Paris"
input=prompt.txt expect 0 "-p -" $AEGIS run "$model" -p - --no-think --temp 0
answers "Paris"
expect 0 "-f" $AEGIS run "$model" -f prompt.txt --no-think --temp 0
answers "Paris"
expect 2 "empty pipe" $AEGIS run "$model"
expect 0 "thoughts stay off the pipe" $AEGIS run "$model" -p "$ask" --think --temp 0
case $out in *think*) fail "thoughts in the answer: $out" ;; esac
expect 0 "verbose" $AEGIS run "$model" -p "$ask" --no-think --seed 5 --verbose
says "tok/s"
says "seed 5"
says "hit rate"
says "expert slots"
expect 0 "stop string" $AEGIS run "$model" -p "$ask" --no-think --temp 0 --stop " France"
[ "$out" = "The capital of" ] || fail "stop string: $out"
expect 0 "length" $AEGIS run "$model" -p "$ask" --no-think --temp 0 -n 3 --json
json "j['stop'] == 'length' and j['tokens'] == 3 and j['text'] and j['peak_bytes'] > 0"
expect 0 "seeded" $AEGIS run "$model" -p "Tell me a story." --no-think --seed 12345678901234567 --temp 1 -n 20 --json
json "j['seed'] == 12345678901234567"
cp stdout.txt first.txt
expect 0 "seeded again" $AEGIS run "$model" -p "Tell me a story." --no-think --seed 12345678901234567 --temp 1 -n 20 --json --memory $((small - 10 * 2**20)) -t 1
python3 -c "import json; a, b = (json.load(open(f))['text'] for f in ('first.txt', 'stdout.txt')); exit(a != b)" ||
    fail "the same seed gave another text"
expect 0 "another seed" $AEGIS run "$model" -p "Tell me a story." --no-think --seed 1 --temp 1 -n 20 --json
python3 -c "import json; a, b = (json.load(open(f))['text'] for f in ('first.txt', 'stdout.txt')); exit(a == b)" ||
    fail "another seed gave the same text"
expect 0 raw $AEGIS run "$model" -p "Once upon a time" --raw --temp 0 -n 5
expect 0 "system prompt" $AEGIS run "$model" -sys "Be brief." -p "$ask" --no-think --temp 0
expect 2 "prompt longer than the context" $AEGIS run "$model" -p "$ask" -c 8
says "context"
expect 5 "closed output" bash -c "$AEGIS run '$model' -p '$ask' --no-think --temp 0 > /dev/full"

expect 0 tokenize $AEGIS tokenize "$model" -p "Hello world" --json
json "j['n'] == len(j['ids']) == len(j['tokens']) and ''.join(j['tokens']) == 'Hello world'"
ids=$(python3 -c "import json; print(','.join(map(str, json.load(open('stdout.txt'))['ids'])))")
echo '[{"role":"user","content":"Hi"}]' > messages.json
expect 0 template $AEGIS template "$model" -f messages.json
answers "<|im_start|>user
Hi<|im_end|>"
echo '{"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"clock"}]}' > request.json
expect 0 "template with tools" $AEGIS template "$model" -f request.json --no-think
answers clock
expect 2 "template of no list" $AEGIS template "$model" -f prompt.txt

expect 0 logits $AEGIS logits "$model" --ids "$ids" --hidden --router --last 2 -o out.safetensors
silent
expect 0 "logits of a text" $AEGIS logits "$model" -p "Hello world" --hidden --router --last 2 -o text.safetensors
cmp -s out.safetensors text.safetensors || fail "ids and their text differ"
python3 - out.safetensors "$ids" << 'PY' || fail "shapes of logits"
import json, struct, sys
f = open(sys.argv[1], 'rb')
n = struct.unpack('<Q', f.read(8))[0]
h = json.loads(f.read(n))
ids = list(map(int, sys.argv[2].split(',')))
k = len(ids)
assert h['ids']['shape'] == [k] and h['ids']['dtype'] == 'I32'
assert h['logits']['shape'] == [2, 6144] and h['logits']['dtype'] == 'F32'
assert h['hidden']['shape'] == [13, k, 256] and h['final']['shape'] == [k, 256]
assert h['router']['shape'] == [12, k, 8] and h['router']['dtype'] == 'I32'
data = f.read()
at = lambda t: data[h[t]['data_offsets'][0]:h[t]['data_offsets'][1]]
assert list(struct.unpack('<%di' % k, at('ids'))) == ids
experts = struct.unpack('<%di' % (12 * k * 8), at('router'))
assert all(0 <= e < 64 for e in experts) and len(set(experts[:8])) == 8
assert any(at('hidden')) and any(at('logits')) and any(at('final'))
PY
expect 2 "id outside the vocabulary" $AEGIS logits "$model" --ids 1,6144 -o bad.safetensors
[ ! -e bad.safetensors ] || fail "a failed run left its output"
expect 5 "output that cannot be written" $AEGIS logits "$model" --ids 1,2 -o nowhere/out.safetensors
expect 2 "no output" $AEGIS logits "$model" --ids 1,2

seq -s ' ' 100 163 > ids.txt
expect 0 "reference" $AEGIS logits "$model" --ids-file ids.txt -o ref.safetensors
expect 0 "eval against itself" $AEGIS eval "$model" --ids-file ids.txt --ref ref.safetensors --json
json "j['tokens'] == 63 and abs(j['kl']) < 1e-9 and j['top1'] == 1 and j['compared'] == 64"
expect 0 "windows and skip" $AEGIS eval "$model" --ids-file ids.txt -c 16 --skip 3 --json
json "j['tokens'] == 4 * 12 and abs(j['ppl'] - 2.718281828459045 ** j['nll']) < 1e-6 * j['ppl']"
head -c 400 "$AEGIS_SOURCE_DIR/tests/data/eval.txt" > text.txt
expect 0 "eval of a text" $AEGIS eval "$model" -f text.txt
answers "perplexity"
expect 2 "reference of other ids" $AEGIS eval "$model" -f text.txt --ref ref.safetensors
expect 2 "nothing to score" $AEGIS eval "$model" --ids-file ids.txt -c 16 --skip 16

expect 0 bench $AEGIS bench "$model" -pp 16 -tg 4 -r 2 --memory "$small" --json
json "all(j[k] >= 0 and k in j['spread'] and k in j['cold'] for k in ('prefill_tok_s', 'decode_tok_s', 'ttft_s', 'first_step_s', 'disk_bytes_per_token', 'hit_rate', 'disk_busy', 'wait_ms_per_token', 'compute_ms_per_token', 'peak_bytes'))"
json "0 < j['peak_bytes'] and j['settings']['repeats'] == 2 and j['machine']['cores'] > 0"

# What a sanitizer adds to the process is beyond the plan.
[ "$small" -gt $((50 * 2**20)) ] || json "j['peak_bytes'] <= $small"

# A signal ends a run cleanly: 130 for SIGINT, 143 for SIGTERM.
for sig in INT TERM; do
    $AEGIS run "$model" -p "Tell me a story." --no-think --ignore-eos --temp 0 > sig.txt 2> sig.err &
    pid=$!
    for _ in $(seq 100); do [ -s sig.txt ] && break; sleep 0.1; done
    kill -$sig $pid
    wait $pid
    rc=$?
    [ $rc -eq $([ $sig = INT ] && echo 130 || echo 143) ] || fail "SIG$sig: exit code $rc $(cat sig.err)"
done
finish
