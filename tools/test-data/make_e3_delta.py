#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Make tests/data/demo-mlx4e3.delta: the demo with 3-bit experts as a difference to models/demo.

usage: make_e3_delta.py SOURCE.safetensors TARGET.safetensors OUT.delta
Lists what is copied and what is coded; tests/support/unpack_e3.c explains the coding and does it.
"""
import os
import struct
import subprocess
import sys
import tempfile

import safetensors_io as st

MAGIC = 0x31653361746c6564
UNPACK_C = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tests/support/unpack_e3.c')


def plan(src_path, dst_path):
    _, src = st.read(src_path)
    head, dst = st.read(dst_path)
    ops = []
    for name, (dtype, shape, data, offset) in dst.items():
        if src[name][2] == data and not name.endswith('.biases'):
            last = ops[-1] if ops else None
            if last and last[0] == 0 and last[1] + last[3] == src[name][3] and last[2] + last[3] == offset:
                last[3] += len(data)
            else:
                ops.append([0, src[name][3], offset, len(data), 0, 0, 0, 0])
        elif name.endswith('.weight'):
            stem = name[:-len('weight')]
            parts = [stem + p for p in ('weight', 'scales', 'biases')]
            ops.append([1] + [src[p][3] for p in parts] + [dst[p][3] for p in parts] + [len(data) // 24])
        elif name.endswith('.biases') and dst[name[:-len('biases')] + 'weight'][2] == src[name[:-len('biases')] + 'weight'][2]:
            ops.append([0, src[name][3], offset, len(data), 0, 0, 0, 0])
    sizes = [os.path.getsize(p) for p in (src_path, dst_path)]
    out = struct.pack('<4Q', MAGIC, *sizes, len(ops)) + b''.join(struct.pack('<8Q', *op) for op in ops)
    return out + struct.pack('<Q', len(head)) + head


def main():
    src, dst, out = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as tmp:
        with open(tmp + '/plan', 'wb') as f:
            f.write(plan(src, dst))
        subprocess.run(['cc', '-O2', '-std=c11', '-ffp-contract=off', '-o', tmp + '/unpack_e3', UNPACK_C, '-lm'], check=True)
        subprocess.run([tmp + '/unpack_e3', 'encode', tmp + '/plan', src, dst, out], check=True)
        subprocess.run([tmp + '/unpack_e3', 'decode', out, src, tmp + '/again'], check=True)
        with open(tmp + '/again', 'rb') as a, open(dst, 'rb') as b:
            if a.read() != b.read():
                raise SystemExit('the delta does not give the target back')
    print('%s: %d bytes' % (out, os.path.getsize(out)))


main()
