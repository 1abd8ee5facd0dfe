#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recording routes, replaying them, and the curve that a replay leaves in the store.
. "$(dirname "$0")/lib.sh"

expect 0 pack $AEGIS pack "$demo" packed
head -c 400 "$AEGIS_SOURCE_DIR/tests/data/eval.txt" > text.txt
expect 0 "record a text" $AEGIS bench packed --text text.txt --record-routes text.routes -c 64 -pp 8 --json
json "j['tokens'] > 64"
expect 0 "record an answer" $AEGIS bench packed --record-routes answer.routes -pp 20 -tg 10 -c 64
answers "routes of 30 tokens"
expect 0 "record it again" $AEGIS bench packed --record-routes again.routes -pp 20 -tg 10 -c 64 -t 1 --prefetch off
cmp answer.routes again.routes || fail "the same seed and tokens, other routes"

expect 0 replay $AEGIS bench packed --replay text.routes --save-curve --json
json "j['curve_saved'] and len({r['policy'] for r in j['rows']}) > 8"
json "all(0 <= r['hit_rate'] <= b['hit_rate'] + 0.02 for r in j['rows'] for b in j['rows'] if b['policy'] == 'belady' and b['slots'] == r['slots'])"
grep -q '"hit_curve": \[\[24, 0' packed/manifest.json || fail "no curve in the manifest"
expect 0 "the store is whole" $AEGIS verify packed
expect 0 "rows for a table" $AEGIS bench packed --replay text.routes --csv
answers 'slots,policy,hit_rate'

expect 4 "no routes" $AEGIS bench packed --replay text.txt
says "text.txt"
silent
head -c 300 text.routes > short.routes
expect 4 "half of the routes" $AEGIS bench packed --replay short.routes
says "truncated"
expect 4 "no file" $AEGIS bench packed --replay nowhere.routes
says "nowhere.routes"
expect 2 "both at once" $AEGIS bench packed --replay text.routes --record-routes x.routes
expect 2 "a text for nothing" $AEGIS bench packed --text text.txt
expect 2 "a curve of nothing" $AEGIS bench packed --save-curve
expect 5 "a place that cannot be written" $AEGIS bench packed --record-routes /nowhere/x.routes -pp 4 -tg 1 -c 64
says "/nowhere/x.routes"
finish
