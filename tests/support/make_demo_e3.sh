#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rebuild the demo with 3-bit experts in TARGET and check it against its pinned hash.
#
# usage: make_demo_e3.sh SOURCE_DIR TARGET UNPACK_COMMAND
set -euo pipefail
source_dir=$1 target=$2 unpack=$3
pinned=572f173d071f8e1125af87dc354c80773a2734fc8b566a741cfe834eb49f4c31

check() { echo "$pinned  $target/model.safetensors" | sha256sum --check --status 2> /dev/null; }
check && exit 0

mkdir -p "$target"
for name in tokenizer.json tokenizer_config.json chat_template.jinja generation_config.json preprocessor_config.json; do
    cp "$source_dir/models/demo/$name" "$target/"
done
cp "$source_dir/tests/data/demo-mlx4e3/config.json" "$target/"
# The unpacker may run under an emulator, so its command is several words.
$unpack decode "$source_dir/tests/data/demo-mlx4e3.delta" "$source_dir/models/demo/model.safetensors" "$target/model.tmp"
mv "$target/model.tmp" "$target/model.safetensors"
check || { echo "the rebuilt demo-mlx4e3 has another hash than the pinned one" >&2; exit 1; }
