#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Golden operators of xing4-tiny together with the weights they were computed from (tests/data/README.md).

usage: make_xing4_pieces.py MODEL_DIR OUT     MODEL_DIR has golden-pieces.safetensors and model.gguf
"""
import struct
import sys

import safetensors_io as st

# What the MLA pieces (block 0) and the router pieces (first block with experts) read; all plain numbers.
WEIGHTS = {
    'blk.0.attn_q_a.weight': 'mla.w.q_a', 'blk.0.attn_q_a_norm.weight': 'mla.w.q_a_norm',
    'blk.0.attn_q_b.weight': 'mla.w.q_b', 'blk.0.attn_kv_a_mqa.weight': 'mla.w.kv_a',
    'blk.0.attn_kv_a_norm.weight': 'mla.w.kv_a_norm', 'blk.0.attn_k_b.weight': 'mla.w.k_b',
    'blk.0.attn_v_b.weight': 'mla.w.v_b', 'blk.0.attn_output.weight': 'mla.w.o',
    'blk.1.ffn_gate_inp.weight': 'router.w', 'blk.1.exp_probs_b.bias': 'router.bias',
}
DTYPES = {0: ('F32', 4), 30: ('BF16', 2)}
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


class Gguf:
    """Only as much of the format as the weights above need."""

    def __init__(self, path):
        self.data = open(path, 'rb').read()
        self.at = 8
        n_tensors, n_keys = self.take('<QQ')
        self.align = 32
        for _ in range(n_keys):
            key = self.text()
            value = self.value(self.take('<I')[0])
            if key == 'general.alignment':
                self.align = value
        self.tensors = {}
        for _ in range(n_tensors):
            name = self.text()
            dims = self.take('<%dQ' % self.take('<I')[0])
            self.tensors[name] = (dims,) + self.take('<IQ')
        self.base = (self.at + self.align - 1) // self.align * self.align

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def text(self):
        n = self.take('<Q')[0]
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, n = self.take('<IQ')
            return [self.value(inner) for _ in range(n)]
        raw = self.data[self.at:self.at + SIZES[kind]]
        self.at += SIZES[kind]
        return int.from_bytes(raw, 'little')

    def plain(self, name):
        dims, kind, offset = self.tensors[name]
        dtype, size = DTYPES[kind]
        count = 1
        for d in dims:
            count *= d
        start = self.base + offset
        return dtype, list(reversed(dims)), self.data[start:start + count * size]


def main():
    source = Gguf(sys.argv[1] + '/model.gguf')
    _, pieces = st.read(sys.argv[1] + '/golden-pieces.safetensors')
    out = {k: v[:3] for k, v in pieces.items()}
    for name, ours in WEIGHTS.items():
        out[ours] = source.plain(name)
    st.write(sys.argv[2], out)


main()
