# SPDX-License-Identifier: Apache-2.0
"""Reading and writing safetensors files as bytes: names, dtypes and shapes, no numpy."""
import json
import struct


def read(path):
    """-> (raw header bytes, {name: (dtype, shape, bytes, offset in the file)} in file order)"""
    with open(path, 'rb') as f:
        raw = f.read()
    n = struct.unpack('<Q', raw[:8])[0]
    tensors = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == '__metadata__':
            continue
        begin, end = t['data_offsets']
        tensors[name] = (t['dtype'], t['shape'], raw[8 + n + begin:8 + n + end], 8 + n + begin)
    return raw[:8 + n], tensors


def write(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}; data starts at a multiple of 8."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)
