#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# pack, show, verify, the cache of first use, plan.
. "$(dirname "$0")/lib.sh"

expect 0 pack $AEGIS pack "$demo" packed --json
json "j['store_bytes'] > 2**20 and j['seconds'] > 0"
expect 2 "pack onto a store" $AEGIS pack "$demo" packed
expect 0 "options of packing on a store" $AEGIS logits packed --ids 1 -o x.safetensors --expert-bits 3
[ "$(grep -c 'is a store already' stderr.txt)" -eq 1 ] || fail "said once: $err"
expect 0 show $AEGIS show packed --json
json "j['hparams']['n_layers'] == 12 and j['hparams']['n_experts'] == 64"
expect 0 "show source" $AEGIS show "$demo"
answers "n_layers"
expect 0 verify $AEGIS verify packed
answers "every hash matches"
cp -r packed broken
printf X | dd of=broken/experts.bin bs=1 seek=70000 conv=notrunc 2> dd.txt
expect 4 "verify a broken store" $AEGIS verify broken
says "experts"
printf X | dd of=broken/tokenizer.bin bs=1 seek=9000 conv=notrunc 2> dd.txt
expect 4 "a damaged tokenizer" $AEGIS tokenize broken -p hi
says "broken/tokenizer.bin: tokenizer table"
rm broken/dense.bin
expect 4 "run a store without dense.bin" $AEGIS run broken -p hi
mkdir source && echo '{}' > source/config.json && head -c 100 "$demo/model.safetensors" > source/model.safetensors
expect 4 "a truncated source" $AEGIS run source -p hi
silent
expect 0 "nothing half packed, no lock left" find cache -type f
silent
ln -s /proc/nowhere nowhere
XDG_CACHE_HOME=$work/nowhere expect 5 "no place for stores" $AEGIS run "$demo" -p hi
says "set XDG_CACHE_HOME"
expect 4 "verify a source" $AEGIS verify "$demo"

# A budget that packing does not fit, alone and on a first use: as it was named, exit 3.
for memory in 1MiB 8MiB; do
    expect 3 "pack in $memory" $AEGIS pack "$demo" little --memory $memory
    says "packing does not fit --memory ${memory%MiB}.00 MiB"
    expect 3 "first use in $memory" $AEGIS run "$demo" -p hi --memory $memory
    says "packing does not fit --memory ${memory%MiB}.00 MiB"
    unsaid "first use"
done

# A model without a tokenizer is packed for token ids only.
mkdir wordless && ln -s "$demo"/* wordless && rm wordless/tokenizer.json
for command in "run wordless -p hi" "chat wordless" "tokenize wordless -p hi" "logits wordless -p hi -o x"; do
    # shellcheck disable=SC2086
    expect 4 "no tokenizer: $command" $AEGIS $command
    says "wordless: neither tokenizer.json nor tokenizer.model"
    unsaid packing
done
printf '{' > words.json && mkdir words && mv words.json words/tokenizer.json
expect 4 "a broken tokenizer" $AEGIS run wordless -p hi --tokenizer words
says "words: tokenizer.json: not valid JSON"
expect 0 "token ids" $AEGIS logits wordless --ids 1,2 -o ids.safetensors
says "first use of wordless"
$AEGIS cache rm --all

# plan: the keys that scripts rely on; a refusal names the accounts and the smallest budget that works.
expect 0 "plan" $AEGIS plan packed --memory 1GiB -c 512 --json
json "all(k in j for k in ('budget', 'fits', 'minimum_budget', 'max_n_ctx', 'accounts', 'expert_slots', 'predicted_decode_tok_s'))"
json "j['budget'] == 2**30 and j['fits'] is True and all(set(a) >= {'name', 'bytes'} for a in j['accounts'])"
json "sum(a['bytes'] for a in j['accounts']) == j['total'] <= j['budget']"
minimum=$(python3 -c "import json; print(json.load(open('stdout.txt'))['minimum_budget'])")
expect 0 "plan at the minimum" $AEGIS plan packed --memory "$minimum" -c 512
answers "expert slots"
expect 3 "plan below the minimum" $AEGIS plan packed --memory $((minimum - 1)) -c 512 --json
json "j['fits'] is False and j['minimum_budget'] == $minimum"
says "--memory $minimum"
expect 3 "run below the minimum" $AEGIS run packed -p hi --memory $((minimum - 1)) -c 512
says "$minimum"
silent
expect 0 "run at the minimum" $AEGIS run packed -p "hi" --memory "$minimum" -c 512 -n 4 --raw

# What needs no weights packs nothing, and says the same as with the store.
cp -r "$demo" model
echo '[{"role": "user", "content": "hi"}]' > messages.json
unpacked() {
    expect 0 "$1 of a source" $AEGIS "$@"
    unsaid "first use"
    unsaid packed
    cp stdout.txt "$1.unpacked"
    [ -z "$(find cache -type f)" ] || fail "$1 left $(find cache -type f)"
}
unpacked plan model --memory 1GiB --json
json "j['packed'] is False and j['store_bytes'] > 2**20"
unpacked tokenize model -p "one two"
unpacked template model -f messages.json
expect 0 "plan of a source, in words" $AEGIS plan model --memory 1GiB
answers "not packed yet: its first use writes"
# A budget in which it could be packed and not run: refused before.
sanitized=$([ "$(small_budget packed)" -gt $((50 * 2**20)) ] && echo yes) # whose own memory counts, and changes
expect 3 "a plan that does not fit" $AEGIS run model -p hi --memory 20MiB -c 4096
[ -n "$sanitized" ] || says "the plan does not fit the budget of 20.0 MiB"
unsaid "first use"
[ -z "$(find cache -type f)" ] || fail "a refused plan left $(find cache -type f)"

# First use: two at once pack once; a changed source packs again; pack options make another store.
$AEGIS logits model --ids 1,2 -o one.safetensors 2> one.err &
$AEGIS logits model --ids 1,2 -o two.safetensors 2> two.err &
wait
[ "$(cat one.err two.err | grep -c 'packed ')" -eq 1 ] || fail "two at once: $(cat one.err two.err)"
cmp one.safetensors two.safetensors || fail "two at once: no equal logits"
expect 0 "second use" $AEGIS logits model --ids 1,2 -o three.safetensors
[ -z "$err" ] || fail "second use says: $err"
for command in tokenize template plan; do
    [ "$command" != plan ] || [ -z "$sanitized" ] || continue
    case $command in
        tokenize) set -- model -p "one two" ;;
        template) set -- model -f messages.json ;;
        plan) set -- model --memory 1GiB --json ;;
    esac
    expect 0 "$command of a store" $AEGIS $command "$@"
    grep -v -E '"(packed|store_bytes)"' stdout.txt > packed.txt
    grep -v -E '"(packed|store_bytes)"' "$command.unpacked" | cmp packed.txt - || fail "$command: not as before packing"
done
expect 0 ls $AEGIS cache ls --json
json "len(j['stores']) == 1 and j['stores'][0]['source'].endswith('/model') and j['stores'][0]['bytes'] > 2**20"
key=$(python3 -c "import json; print(json.load(open('stdout.txt'))['stores'][0]['key'])")
mv "cache/aegis/stores/$key" saved
mkdir "cache/aegis/stores/$key.outline" && echo x > "cache/aegis/stores/$key.outline/dense.bin" # a process was killed
expect 0 "plan behind it" $AEGIS plan model --memory 1GiB
[ ! -e "cache/aegis/stores/$key.outline" ] || fail "an old outline is still there"
mv saved "cache/aegis/stores/$key"
touch model/config.json
expect 0 "changed source" $AEGIS logits model --ids 1 -o x.safetensors --memory 1GiB
says "first use"
expect 0 "ls" $AEGIS cache ls
[ "$(wc -l < stdout.txt)" -eq 2 ] || fail "cache ls: $out"
expect 0 rm $AEGIS cache rm "$key"
expect 2 "rm twice" $AEGIS cache rm "$key"
expect 2 "rm of a path" $AEGIS cache rm ../../model
expect 2 "rm of nothing" $AEGIS cache rm
touch cache/aegis/stores/killed-0123456789abcdef.lock
expect 0 "rm --all" $AEGIS cache rm --all
[ -z "$(ls -A cache/aegis/stores)" ] || fail "rm --all left $(ls -A cache/aegis/stores)"
expect 0 "ls of nothing" $AEGIS cache ls
silent
expect 0 "a bad folder left nothing" find cache -name '*manifest*'
silent
finish
