#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench, doctor and the prediction of plan: fields, lines, comparisons, and what is refused.
. "$(dirname "$0")/lib.sh"
model=$(store) || exit 1
small=$(small_budget "$model") || exit 1
runs="-pp 16 -tg 6 -r 2"

# --- bench: one setting ---------------------------------------------------------------------------
# shellcheck disable=SC2086
bench() { expect 0 "bench $*" $AEGIS bench "$model" $runs "$@"; }
bench --memory "$small" --json
json "all(j[k] is not None and k in j['spread'] and k in j['q1'] and k in j['cold'] for k in ('prefill_tok_s', 'decode_tok_s', 'ttft_s', 'first_step_s', 'disk_bytes_per_token', 'hit_rate', 'disk_busy', 'wait_ms_per_token', 'compute_ms_per_token', 'peak_bytes'))"
json "j['settings']['tokens'] == 'sampled' and [r['seed'] for r in j['runs']] == [1, 2] and j['settings']['seed'] == 1"
json "all(r['decode_tok_s'] > 0 for r in j['runs']) and j['q1']['decode_tok_s'] <= j['decode_tok_s'] <= j['q3']['decode_tok_s']"
json "j['roof']['bytes_per_token'] > j['roof']['dense'] > 0 and j['roof']['share'] > 0"
json "all(abs(r['dense_ms_per_token'] + r['expert_ms_per_token'] - r['compute_ms_per_token']) < 1e-6 for r in j['runs'] + [j['cold']])"
json "all(abs((r['compute_ms_per_token'] + r['wait_ms_per_token']) * r['decode_tok_s'] - 1000) < 1e-3 for r in j['runs'] + [j['cold']])" # of the same steps
json "j['roof']['dense_bytes_per_s'] > 0 and j['roof']['experts_bytes_per_s'] > 0 and j['roof']['resident_share'] > 0"
json "all(0 < j['machine'][k]['min'] <= j['machine'][k]['median'] <= j['machine'][k]['max'] for k in ('read_bandwidth_start', 'read_bandwidth_end'))"
json "j['machine']['cores'] > 0 and j['machine']['memory_bytes'] > 0 and 'memory_limit' in j['machine'] and j['version'].startswith('0.')"
json "j['prefill_share_of_bound'] is None and j['prefill_read_s'] is None and j['prefill_compute_s'] > 0 and j['prefill_read_bytes'] > 0"
json "all(r['run_bound_tok_s'] > 0 and r['layer_bound_tok_s'] > 0 and 0 <= r['layers_missing'] <= 1 for r in j['runs'] + [j['cold']])" # needs no doctor
json "j['bound_tok_s'] is None and j['predicted_decode_tok_s'] is None and j['machine']['disk_bytes_per_s'] is None" # no doctor yet
bench --memory "$small" --io null --json
json "j['roof']['experts_bytes_per_s'] == 0 and j['roof']['resident_share'] is None" # nothing was written to the slots
bench --memory "$small" --prefetch off --sim-disk 1GB/s,20us --tokens greedy --json
json "j['wait_ms_per_token'] > 0 and j['bound_tok_s'] > 0 and all(0 < r['bound_share'] < 1.2 for r in j['runs'] + [j['cold']]) and j['predicted_decode_tok_s'] > 0 and j['predicted_at_measured_hits_tok_s'] > 0"
json "all(r['run_bound_tok_s'] >= r['layer_bound_tok_s'] * 0.999999 for r in j['runs'] + [j['cold']])" # without guesses
json "all(abs(r['layer_bound_share'] * r['layer_bound_tok_s'] - r['decode_tok_s']) < 1e-3 and r['layers_missing'] > 0 for r in j['runs'] + [j['cold']])"
json "j['settings']['sim_bytes_per_s'] == 1e9 and j['settings']['sim_latency_us'] == 20 and j['settings']['tokens'] == 'greedy'"
json "all(r['wait_ms_per_token'] == 0 or 0 < r['disk_busy_while_waiting'] <= 1 and 0 < r['disk_bytes_per_s_while_waiting'] <= 1.01e9 for r in j['runs'] + [j['cold']])"
json "max(r['disk_busy_while_waiting'] for r in j['runs'] + [j['cold']]) > 0.5" # the best: one may lose the processor while it waits
json "all(abs(r['prefill_compute_s'] + r['prefill_wait_s'] - r['ttft_s']) < 1e-6 for r in j['runs'])"
json "all(abs(r['prefill_share_of_bound'] * r['ttft_s'] - max(r['prefill_read_s'], r['prefill_compute_s'])) < 1e-6 for r in j['runs'])"
json "abs(j['cold']['prefill_read_s'] * 1e9 - j['cold']['prefill_read_bytes']) < 1"
json "j['predicted_with_typical_hit_curve'] is True"
bench --memory 1GiB --preload --json
json "all(r['hit_rate'] == 1 and r['wait_ms_per_token'] == 0 and r['prefill_read_bytes'] == 0 for r in j['runs'] + [j['cold']]) and j['settings']['preload'] is True"
bench --memory "$small" --tokens random
answers "random"
answers "read bandwidth"
bench --memory "$small" --csv
python3 - << 'PY' || fail "shape of the CSV"
import csv
rows = list(csv.DictReader(open('stdout.txt')))
assert [r['row'] for r in rows] == ['cold', 'run1', 'run2', 'median', 'q1', 'q3', 'spread'], rows
assert all(None not in r and None not in r.values() for r in rows)
assert [r['seed'] for r in rows] == ['0', '1', '2', '', '', '', '']
assert float(rows[3]['decode_tok_s']) > 0 and rows[0]['bound_tok_s'] == ''
assert {'machine.cores', 'machine.read_bandwidth_start.median', 'settings.threads', 'model.family', 'version'} <= set(rows[0])
PY

# --- A against B --------------------------------------------------------------------------------------
bench --memory "$small" --prefetch off --ab "--prefetch auto --threads 1" --json
json "j['engines'] == 'one after the other' and j['same_tokens'] is True"
json "j['a']['settings']['prefetch'] == 0 and j['b']['settings']['prefetch'] == -1 and j['b']['settings']['threads'] == 1"
json "j['b']['settings']['threads_used'] == 1 and 1 <= j['a']['settings']['threads_used'] <= j['a']['settings']['threads']"
json "[r['seed'] for r in j['a']['runs']] == [r['seed'] for r in j['b']['runs']] == [1, 2]"
json "abs(j['ratio_of_medians']['decode_tok_s'] * j['a']['decode_tok_s'] - j['b']['decode_tok_s']) < 1e-6 * j['b']['decode_tok_s']"
json "j['median_of_pair_ratios']['decode_tok_s'] > 0"
bench --memory 1GiB --ab "--chunk 8" --json
json "j['engines'] == 'together' and j['b']['settings']['chunk'] == 8 and j['a']['settings']['expert_slots'] == j['b']['settings']['expert_slots']"
bench --memory "$small" --seed 9 --ab "--kv-type f16" --csv
[ "$(grep -c ',run[0-9]' stdout.txt)" -eq 4 ] && [ "$(grep -c '^b,' stdout.txt)" -eq 7 ] || fail "lines of both sides: $out"
bench --memory "$small" --ab "--chunk 8"
answers "B / A"
answers "median of pairs"

# shellcheck disable=SC2086
expect 2 "both formats" $AEGIS bench "$model" $runs --json --csv
says "one of them"
expect 2 "unknown option in --ab" $AEGIS bench "$model" --ab "--prefech off"
says "--ab"
expect 2 "repeats in --ab" $AEGIS bench "$model" --ab "-r 5"
says "the same for both"
expect 2 "a model in --ab" $AEGIS bench "$model" --ab "$model"
says "is no option"
expect 2 "tokens" $AEGIS bench "$model" --tokens some
says "sampled|greedy|random"
expect 2 "context" $AEGIS bench "$model" -pp 64 -tg 8 -c 32
says "do not fit the context"
expect 2 "disk of nothing" $AEGIS bench "$model" --sim-disk 7GB/s,never
says "7GB/s,never"
expect 3 "preload of a part" $AEGIS bench "$model" -pp 8 -tg 2 -r 1 --memory "$small" --preload
says "ahead needs a budget of"
expect 3 "budget of B" $AEGIS bench "$model" -pp 8 -tg 2 -r 1 --memory "$small" --ab "--memory 1MiB"

# --- doctor -------------------------------------------------------------------------------------------
before=$(ls -lAR "$model")
expect 0 doctor $AEGIS doctor "$model"
answers "memory reads"
answers "not in this version"
expect 0 "doctor --json" $AEGIS doctor "$model" --json
json "all(i['state'] == 'ok' or i['advice'].endswith('.') for i in j['items']) and all(i['found'] for i in j['items'])"
json "{'disk', 'memory', 'locked memory', 'huge pages', 'memory reads', 'processor', 'kernels', 'cores', 'GPU'} <= {i['name'] for i in j['items']}"
json "[d['depth'] for d in j['disk']['depths']] == [1, 2, 4, 8, 16, 32] and all(d['bytes_per_s'] > 0 for d in j['disk']['depths'])"
json "j['disk']['record_bytes'] == 32768 and j['disk']['path'].endswith('experts.bin') and j['disk']['burst_bytes_per_s'] > 0"
json "j['kept'] is True and 1 <= j['knee_threads'] <= j['machine']['usable_cores'] and j['read_bandwidth'][0]['threads'] == 1"
[ "$(ls -lAR "$model")" = "$before" ] || fail "doctor changed the model's folder"
python3 -c "
import json, os
d = json.load(open('cache/aegis/doctor.json'))
f = d['disks'][str(os.stat('$model').st_dev)]['32768']
assert f['bytes_per_s'] > 0 and d['read_bandwidth'] > 0" || fail "the figure is not kept by filesystem"
mkdir folder && head -c 4000000 /dev/zero > folder/weights.safetensors
expect 0 "doctor of a folder" $AEGIS doctor folder --io pread --json
json "j['disk']['path'].endswith('weights.safetensors') and 'pread' in j['disk']['how']"
ln -s "$demo" published
expect 0 "doctor of a source" $AEGIS doctor published --json # with the reads of the store that it would become
json "j['disk']['record_bytes'] == 32768 and j['disk']['path'].endswith('published/model.safetensors')"
expect 0 "first use" $AEGIS logits published --ids 1 -o first.safetensors -c 64
expect 0 "doctor of a packed source" $AEGIS doctor published --json # its store is what runs
json "j['disk']['record_bytes'] == 32768 and j['disk']['path'].startswith('$work/cache/aegis/stores/')"
$AEGIS cache rm --all
mkdir nothing
expect 0 "doctor of an empty folder" $AEGIS doctor nothing
answers "no file of 1 MiB"
answers "aegis doctor MODEL"
expect 4 "doctor of nothing" $AEGIS doctor "$work/nowhere"
says "nowhere"
expect 2 "doctor of a simulation" $AEGIS doctor "$model" --io sim
expect 2 "two models" $AEGIS doctor "$model" -m "$model"

# --- prediction ---------------------------------------------------------------------------------------
expect 0 "plan with a figure" $AEGIS plan "$model" --memory "$small" --json
json "j['predicted_position'] == 512 and 0 < j['predicted_full_tok_s'] < j['predicted_decode_tok_s']"
json "j['predicted_decode_tok_s'] > 0 and 0 < j['predicted_hit_rate'] < 1 and j['typical_hit_curve'] is True and j['disk_bytes_per_s'] > 0"
expect 0 "plan in words" $AEGIS plan "$model" --memory "$small"
answers "predicted with a typical hit curve"
expect 0 "plan of a fast disk" $AEGIS plan "$model" --memory "$small" --sim-disk 100GB/s --json
fast=$(python3 -c "import json; print(json.load(open('stdout.txt'))['predicted_decode_tok_s'])")
expect 0 "plan of a slow disk" $AEGIS plan "$model" --memory "$small" --sim-disk 50MB/s --json
json "0 < j['predicted_decode_tok_s'] and 1 / j['predicted_decode_tok_s'] - 1 / $fast > 1e-3" # s: whatever speed computing has
expect 0 "plan all resident" $AEGIS plan "$model" --memory 1GiB
answers "all experts in memory"
bench --memory "$small" --json
json "j['bound_tok_s'] > 0 and j['predicted_decode_tok_s'] > 0"
expect 3 "no prediction of what does not fit" $AEGIS plan "$model" --memory 1MiB --json
json "j['predicted_decode_tok_s'] == 0 and j['fits'] is False"
python3 - << 'PY' || fail "a figure for reads of another size"
import json
path = 'cache/aegis/doctor.json'
kept = json.load(open(path))
for disk in kept['disks'].values():
    for size in list(disk):
        figure = disk.pop(size)
        figure['record_bytes'] *= 8
        disk[str(figure['record_bytes'])] = figure
json.dump(kept, open(path, 'w'))
PY
expect 0 "plan with a figure for other reads" $AEGIS plan "$model" --memory "$small"
answers "measured with reads of"
expect 0 "its numbers" $AEGIS plan "$model" --memory "$small" --json
json "j['predicted_decode_tok_s'] == 0 and j['disk_bytes_per_s'] == 0"
rm cache/aegis/doctor.json
expect 0 "plan without a figure" $AEGIS plan "$model" --memory "$small" --json
json "j['predicted_decode_tok_s'] == 0"
echo "{}" > cache/aegis/doctor.json
expect 0 "plan with another file" $AEGIS plan "$model" --memory "$small"
answers "aegis doctor $model"
finish
