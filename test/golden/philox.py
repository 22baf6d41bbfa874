"""Philox 4x32-10 in numpy, with the conventions of runtime/base/philox.h."""
import numpy as np

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def philox4x32(seed, stream, step, block):
    """block: uint64 array [n] -> uint32 array [n, 4]."""
    block = np.asarray(block, dtype=np.uint64)
    c0, c1 = block & _LOW, block >> _32
    c2, c3 = np.full_like(block, stream), np.full_like(block, step)
    k0, k1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((p1 >> _32) ^ c1 ^ np.uint64(k0), p1 & _LOW,
                          (p0 >> _32) ^ c3 ^ np.uint64(k1), p0 & _LOW)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def uniform(seed, stream, step, elements):
    """elements: uint64 array of any shape -> float32 in [0, 1), 24 bits each, of the same shape."""
    elements = np.asarray(elements, dtype=np.uint64)
    flat = elements.reshape(-1)
    words = philox4x32(seed, stream, step, flat >> np.uint64(2))
    words = words[np.arange(flat.size), (flat & np.uint64(3)).astype(np.int64)]
    return ((words >> np.uint32(8)).astype(np.float32) * np.float32(2.0 ** -24)).reshape(elements.shape)
