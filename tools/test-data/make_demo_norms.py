#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_demo_norms.py DEMO.gguf OUT.safetensors - the demo's norm weights before the MLX conversion rounded them.

MLX conversions store norms as bf16(1 + w). The goldens were computed with 1 + w in f32. The GGUF form of the same
checkpoint keeps that sum in f32, so the exact weights can be taken from it (F32 tensors, no arithmetic here)."""
import json
import struct
import sys


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 4

    def num(self, fmt):
        value = struct.unpack_from('<' + fmt, self.data, self.at)[0]
        self.at += struct.calcsize('<' + fmt)
        return value

    def string(self):
        n = self.num('Q')
        self.at += n
        return self.data[self.at - n:self.at].decode('utf-8', 'replace')

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            element, n = self.num('I'), self.num('Q')
            return [self.value(element) for _ in range(n)]
        return self.num({0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: 'B', 10: 'Q', 11: 'q', 12: 'd'}[kind])


def read(path):
    with open(path, 'rb') as f:
        data = f.read()
    r = Reader(data)
    r.num('I')
    n_tensors, n_keys = r.num('Q'), r.num('Q')
    for _ in range(n_keys):
        r.string()
        r.value(r.num('I'))
    tensors = {}
    for _ in range(n_tensors):
        name = r.string()
        dims = [r.num('Q') for _ in range(r.num('I'))]
        kind, offset = r.num('I'), r.num('Q')
        tensors[name] = (dims, kind, offset)
    return data, tensors, (r.at + 31) // 32 * 32


def main():
    data, tensors, base = read(sys.argv[1])
    wanted = {'output_norm.weight': 'language_model.model.norm.weight'}
    names = {'attn_norm': 'input_layernorm', 'post_attention_norm': 'post_attention_layernorm',
             'attn_q_norm': 'self_attn.q_norm', 'attn_k_norm': 'self_attn.k_norm'}
    for name in tensors:
        part = name.split('.')
        if part[0] == 'blk' and part[2] in names:
            wanted[name] = f'language_model.model.layers.{part[1]}.{names[part[2]]}.weight'
    header, blobs, at = {}, [], 0
    for source, target in sorted(wanted.items(), key=lambda item: item[1]):
        dims, kind, offset = tensors[source]
        if kind != 0:
            raise SystemExit(f'{source}: type {kind}, expected 0 (F32)')
        n = 4 * dims[0]
        blobs.append(data[base + offset:base + offset + n])
        header[target] = {'dtype': 'F32', 'shape': dims, 'data_offsets': [at, at + n]}
        at += n
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(sys.argv[2], 'wb') as out:
        out.write(struct.pack('<Q', len(text)) + text + b''.join(blobs))


main()
