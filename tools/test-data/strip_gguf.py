#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The metadata of a GGUF file without its tensors. usage: strip_gguf.py MODEL.gguf OUT.gguf"""
import struct
import sys

WIDTH = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def skip_value(data, at, kind):
    if kind == 8:
        return at + 8 + struct.unpack_from('<Q', data, at)[0]
    if kind == 9:
        kind, n = struct.unpack_from('<IQ', data, at)
        at += 12
        for _ in range(n):
            at = skip_value(data, at, kind)
        return at
    return at + WIDTH[kind]


def main():
    with open(sys.argv[1], 'rb') as f:
        data = f.read()
    magic, version, _, n_kv = struct.unpack_from('<4sIQQ', data)
    at = 24
    for _ in range(n_kv):
        at += 8 + struct.unpack_from('<Q', data, at)[0]
        at = skip_value(data, at + 4, struct.unpack_from('<I', data, at)[0])
    with open(sys.argv[2], 'wb') as f:
        f.write(struct.pack('<4sIQQ', magic, version, 0, n_kv) + data[24:at])


main()
