#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Remake tests/data from the full set of models and golden numbers (tests/data/README.md).

usage: make_test_data.py FROM [TO]      FROM has models/ and golden/; TO defaults to tests/data
needs: python3-xxhash for the .sums files
"""
import os
import shutil
import sys

import safetensors_io as st
import xxhash

HERE = os.path.dirname(os.path.abspath(__file__))


def text_tensors(src, dst):
    """The golden without its picture tensors: those belong to the vision tests and are large."""
    _, tensors = st.read(src)
    st.write(dst, {k: v[:3] for k, v in tensors.items() if not k.startswith('img')})


def sums(src, dst):
    """One line per tensor: name, dtype, shape, XXH3-64 of its bytes; sorted by name."""
    _, tensors = st.read(src)
    with open(dst, 'w') as f:
        f.write('# name dtype shape xxh3-64; made by tools/test-data/make_test_data.py\n')
        for name in sorted(tensors):
            dtype, shape, data, _ = tensors[name]
            f.write('%s %s %s %016x\n' % (name, dtype, 'x'.join(map(str, shape)), xxhash.xxh3_64_intdigest(data)))


def main():
    src = sys.argv[1]
    dst = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, '../../tests/data')

    def copy(a, b):
        os.makedirs(os.path.dirname(os.path.join(dst, b)), exist_ok=True)
        shutil.copyfile(os.path.join(src, a), os.path.join(dst, b))

    copy('models/eval.txt', 'eval.txt')
    copy('golden/demo-eval512-mlx4.safetensors', 'demo-eval512-mlx4.safetensors')
    for name in ('mlx4', 'mlx4e3'):
        text_tensors('%s/golden/demo-golden-%s.safetensors' % (src, name), '%s/demo-golden-%s.safetensors' % (dst, name))
        copy('models/qwen35moe-tiny-%s/config.json' % name, 'qwen35moe-tiny-%s/config.json' % name)
        sums('%s/models/qwen35moe-tiny-%s/model.safetensors' % (src, name), '%s/qwen35moe-tiny-%s/model.sums' % (dst, name))
    copy('models/qwen35moe-tiny/config.json', 'qwen35moe-tiny/config.json')
    copy('models/qwen35moe-tiny/model.safetensors', 'qwen35moe-tiny/model.safetensors')
    text_tensors(src + '/models/qwen35moe-tiny/golden.safetensors', dst + '/qwen35moe-tiny/golden.safetensors')
    copy('models/demo-mlx4e3/config.json', 'demo-mlx4e3/config.json')


main()
