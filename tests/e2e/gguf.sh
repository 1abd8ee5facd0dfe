#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# GGUF files as MODEL: shown, packed on first use, told apart. With AEGIS_DEMO_GGUF (the demo as Q4_K_M, 30 MB, too large for the
# tree): the texts and the perplexity of a public engine on the same file.
. "$(dirname "$0")/lib.sh"
tiny=$AEGIS_BINARY_DIR/test-data/tiny-gguf

expect 0 "show a file" $AEGIS show "$tiny/tiny.gguf" --json
json "j['format'] == 'gguf' and j['hparams']['family'] == 'qwen35moe' and j['hparams']['n_layers'] == 4 and j['mtp_tensors'] == 3"
expect 0 "first use" $AEGIS logits "$tiny/tiny.gguf" --ids 1,2,3 -o one.safetensors
says "packing it into"
expect 0 "second use" $AEGIS logits "$tiny/tiny.gguf" --ids 1,2,3 -o two.safetensors
case $err in *"packing it into"*) fail "packed a second time" ;; esac
expect 0 "a split set" $AEGIS logits "$tiny/split-00001-of-00003.gguf" --ids 1,2,3 -o three.safetensors
cmp -s one.safetensors three.safetensors || fail "a split set has other logits"
expect 4 "a later part" $AEGIS show "$tiny/split-00002-of-00003.gguf"
says "name the first one"
expect 0 pack $AEGIS pack "$tiny/tiny.gguf" packed
expect 0 verify $AEGIS verify packed
expect 0 "into new folders" $AEGIS pack "$tiny/tiny.gguf" new/er/packed
expect 4 "pack nothing" $AEGIS pack nowhere.gguf other
says "nowhere.gguf: No such file"
expect 4 "verify a file" $AEGIS verify "$tiny/tiny.gguf"
says "not a store"

# A link into a download cache: the parts of a set go by the names beside the link.
mkdir links blobs
for part in 1 2 3; do
    cp "$tiny/split-0000$part-of-00003.gguf" "blobs/$part"
    ln -s "../blobs/$part" "links/split-0000$part-of-00003.gguf"
done
expect 0 "a set of links" $AEGIS show links/split-00001-of-00003.gguf
expect 0 "used by links" $AEGIS logits links/split-00001-of-00003.gguf --ids 1,2,3 -o four.safetensors
rm blobs/3
expect 4 "a part is missing" $AEGIS show links/split-00001-of-00003.gguf
says "split-00003-of-00003.gguf"

expect 4 "the folder of a file" $AEGIS run "$tiny" -p hi
says "of a GGUF model name the file, here split-00001-of-00003.gguf"

head -c 200000 "$tiny/tiny.gguf" > cut.gguf
expect 4 "a cut file" $AEGIS run cut.gguf -p hi
says "cut.gguf"
says "(file truncated?)"
unsaid "packing"
silent
printf 'no model' > text.gguf
expect 4 "no GGUF file at all" $AEGIS run text.gguf -p hi
says "no GGUF file"
chmod 0 text.gguf
if [ ! -r text.gguf ]; then # root reads everything
    expect 4 "a file that may not be read" $AEGIS run text.gguf -p hi
    says "Permission denied"
fi
python3 - <<'END'
import struct
def text(s):
    return struct.pack('<Q', len(s)) + s
for name, arch in (('mmproj', b'clip'), ('other', b'llama'), ('weird', b'\x1b[2J\xff\xc2\x9b\n')):
    with open(name + '.gguf', 'wb') as f:
        f.write(b'GGUF' + struct.pack('<IQQ', 3, 0, 1) + text(b'general.architecture') + struct.pack('<I', 8) + text(arch))
END
expect 4 "an image encoder" $AEGIS run mmproj.gguf -p hi
says "mmproj file"
expect 4 "another architecture" $AEGIS run other.gguf -p hi
unsaid "packing" # nothing is said to begin that does not
says "'llama' without experts (a dense model); aegis runs Mixture-of-Experts models only, in this version of the families qwen35moe"
expect 4 "bytes for a terminal" $AEGIS run weird.gguf -p hi
says "architecture '\\x1b[2J\\xff\\xc2\\x9b\\x0a' without experts"
LC_ALL=C grep -q '[^ -~]' stderr.txt && fail "bytes of a file reached the terminal"

# same QUESTION ANSWER
same() {
    expect 0 "$1" $AEGIS run "$AEGIS_DEMO_GGUF" --no-think --temp 0 -n 48 -p "$1"
    [ "$out" = "$2" ] || fail "'$1': '$out', expected '$2'"
}
if [ -n "${AEGIS_DEMO_GGUF:-}" ]; then
    same "What is the capital of France?" "The capital of France is Paris."
    same "What does the grep command do?" '`grep`: print lines that match patterns.'
    same "Extract name, age and city as JSON: Maya is 31 years old and lives in Oslo." '{"name": "Maya", "age": 31, "city": "Oslo"}'
    same "Who are you?" "I am Aegis, a very small mixture-of-experts model that runs inside a memory budget."
    same "Wie heißt die Hauptstadt von Österreich? 日本 🙂" '`ionice`: set or get process I/O scheduling class and priority.'
    expect 0 ids $AEGIS tokenize "$AEGIS_DEMO_GGUF" -f "$AEGIS_SOURCE_DIR/tests/data/eval.txt" --json
    python3 -c "import json; print('\n'.join(map(str, json.load(open('stdout.txt'))['ids'][:3072])))" > ids.txt
    expect 0 perplexity $AEGIS eval "$AEGIS_DEMO_GGUF" --ids-file ids.txt -c 512 --skip 256 --json
    json "j['tokens'] == 1530 and abs(j['ppl'] / 13.7004 - 1) < 0.01"
else
    echo "AEGIS_DEMO_GGUF is not set: the demo's texts and perplexity were not compared"
fi
exit $failed
