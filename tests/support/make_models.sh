#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tiny models of tests/data/models as whole folders in TARGET: weights.txt becomes model.safetensors (make_weights.c),
# X.zst becomes X, everything else is copied. Nothing is done for a folder that is up to date.
#
# usage: make_models.sh SOURCE_DIR TARGET MAKE_WEIGHTS_COMMAND
set -euo pipefail
source_dir=$1 target=$2 make_weights=$3

for from in "$source_dir"/tests/data/models/*/; do
    name=$(basename "$from") sums=
    sums=$(cat "$from"* "$source_dir/tests/support/make_weights.c" | sha256sum)
    to=$target/$name
    [ "$(cat "$to/made-from" 2> /dev/null)" = "$sums" ] && continue
    rm -rf "$to"
    mkdir -p "$to"
    for file in "$from"*; do
        case $file in
        */weights.txt) $make_weights "$file" "$to/model.safetensors" ;;
        *.zst) zstd -dqf "$file" -o "$to/$(basename "$file" .zst)" ;;
        *) cp "$file" "$to/" ;;
        esac
    done
    echo "$sums" > "$to/made-from"
done
