#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The budget holds, and nothing shows it: for budgets from the printed minimum to all-resident the process peaks at or below
# the budget (VmHWM), a memory cgroup limited to the budget peaks at or below it without one failed charge, and the
# logits are the same bytes. Where no memory cgroup can be made only VmHWM is checked, and the script skips (77).
set -euo pipefail

store=$AEGIS_BINARY_DIR/test-stores/demo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prompt="Tell me a story about a fox and a river, and then explain step by step what happened in it."

json() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"d": d}))' "$1" "$2"; }
fail() { echo "FAIL: $*" >&2; exit 1; }

check() { # context, budget, threads
    local ctx=$1 budget=$2 threads=$3 out=$work/logits-$1.safetensors
    "$AEGIS_CGROUP_RUN" -o "$work/report" "$budget" $AEGIS run "$store" --memory "$budget" -c "$ctx" -t "$threads" -n 24 \
        --temp 0 -p "$prompt" > "$work/answer" || return $?
    local peak failcnt rss
    peak=$(json "$work/report" 'd["peak"]') failcnt=$(json "$work/report" 'd["failcnt"]') rss=$(json "$work/report" 'd["max_rss"]')
    echo "context $ctx budget $budget threads $threads: cgroup peak $peak, VmHWM $rss, failed charges $failcnt"
    [ "$rss" -le "$budget" ] || fail "VmHWM $rss exceeds the budget $budget"
    [ "$peak" -le "$budget" ] || fail "the cgroup's peak $peak exceeds the budget $budget"
    [ "$failcnt" -eq 0 ] || fail "$failcnt charges met the limit $budget"
    if [ ! -f "$work/answer-$ctx" ]; then cp "$work/answer" "$work/answer-$ctx"; fi
    cmp "$work/answer" "$work/answer-$ctx" || fail "the answer differs at $budget"

    $AEGIS logits "$store" --memory "$budget" -c "$ctx" -t "$threads" -p "$prompt" -o "$out"
    if [ ! -f "$work/first-$ctx" ]; then cp "$out" "$work/first-$ctx"; fi
    cmp "$out" "$work/first-$ctx" || fail "the logits differ at $budget"
}

"$AEGIS_CGROUP_RUN" 0 true || { echo "no memory cgroup can be made here"; exit 77; }
for ctx in 512 4096; do
    $AEGIS plan "$store" --memory 64MiB -c "$ctx" -t 1 --json > "$work/plan"
    minimum=$(json "$work/plan" 'd["minimum_budget"]')
    $AEGIS plan "$store" --memory "$((minimum - 1))" -c "$ctx" -t 1 > /dev/null 2>&1 && fail "one byte less than the minimum fits" || [ $? -eq 3 ]
    echo "context $ctx: the minimum is $minimum bytes"
    for budget in "$minimum" $((minimum + (2 << 20))) $((minimum + (8 << 20))) $((minimum + (24 << 20))) $((64 << 20)); do
        check "$ctx" "$budget" 1
    done
    check "$ctx" $((minimum + (4 << 20))) 2
done

# The first use of a source folder packs it in a child under the same budget.
for budget in $((16 << 20)) $((24 << 20)); do
    rm -rf "$work/cache"
    XDG_CACHE_HOME=$work/cache "$AEGIS_CGROUP_RUN" -o "$work/report" "$budget" $AEGIS run "$AEGIS_SOURCE_DIR/models/demo" \
        --memory "$budget" -c 256 -t 1 -n 4 --temp 0 -p hello > "$work/answer" || fail "first use inside $budget bytes"
    peak=$(json "$work/report" 'd["peak"]') failcnt=$(json "$work/report" 'd["failcnt"]') rss=$(json "$work/report" 'd["max_rss"]')
    echo "first use, budget $budget: cgroup peak $peak, largest VmHWM $rss, failed charges $failcnt"
    [ "$rss" -le "$budget" ] && [ "$peak" -le "$budget" ] && [ "$failcnt" -eq 0 ] || fail "packing exceeds $budget"
done
