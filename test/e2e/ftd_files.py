"""Writes .ftd files with the standard library alone, by the text of docs/data.md: what the loader is tested with."""

import json
import struct

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def turned(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def lane(accumulator, word):
    return turned((accumulator + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0, as its specification has it."""
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= size:
            lanes = [lane(value, word) for value, word in zip(lanes, struct.unpack_from("<4Q", data, at))]
            at += 32
        total = sum(turned(value, bits) for value, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for value in lanes:
            total = ((total ^ lane(0, value)) * P1 + P4) & MASK
    else:
        total = P5
    total = (total + size) & MASK
    while at + 8 <= size:
        total = (turned(total ^ lane(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= size:
        total = (turned(total ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        total = turned(total ^ byte * P5 & MASK, 11) * P1 & MASK
    total = (total ^ total >> 33) * P2 & MASK
    total = (total ^ total >> 29) * P3 & MASK
    return total ^ total >> 32


def contents(documents, mask=None, inputs=(), vocabulary_size=256, kind="text", counted=None, **metadata):
    """The bytes of a file. `mask` has 0 or 1 for each token; `inputs` are (name, type, shape, bytes), wide ones first."""
    begins, tokens = [0], [token for document in documents for token in document]
    for document in documents:
        begins.append(begins[-1] + len(document))
    code, dtype = ("H", "U16") if vocabulary_size <= 65536 else ("I", "U32")
    stored = [("documents", "U64", [len(begins)], struct.pack(f"<{len(begins)}Q", *begins)),
              *((f"input.{name}", *rest) for name, *rest in inputs),
              ("tokens", dtype, [len(tokens)], struct.pack(f"<{len(tokens)}{code}", *tokens))]
    if mask is not None:
        bits = bytearray((len(mask) + 7) // 8)
        for i, counts in enumerate(mask):
            bits[i >> 3] |= counts << (i & 7)
        stored.append(("loss_mask", "U8", [len(bits)], bytes(bits)))
    metadata = {"format": "ftd", "version": "1", "kind": kind, "vocabulary_size": str(vocabulary_size), "tokenizer_hash": "",
                "counted": str(sum(mask) if counted is None and mask is not None else len(tokens) if counted is None else counted),
                "xxh64.header": "0" * 16, **{f"xxh64.{name}": f"{xxh64(data):016x}" for name, _, _, data in stored}, **metadata}
    header, begin = {"__metadata__": dict(sorted(metadata.items()))}, 0
    for name, dtype, shape, data in stored:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + len(data)]}
        begin += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    text = text.replace(b'"xxh64.header":"' + b"0" * 16, f'"xxh64.header":"{xxh64(text):016x}'.encode())
    return struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in stored)


def write(path, *args, **kwargs):
    path.write_bytes(contents(*args, **kwargs))
    return path


def packed(documents, mask, length, pad=0):
    """What --packed models are given of documents: rows of tokens, targets, segments and positions. Each pack is looked at for every document."""
    begins = [sum(map(len, documents[:k])) for k in range(len(documents))]
    whole, rest = [], []
    for begin, document in zip(begins, documents):
        places = len(document) - 1
        whole += [[(begin + at, length)] for at in range(0, places - length + 1, length)]
        rest.append((begin + places // length * length, places % length))
    packs, clock = [], 0  # [room, since when, numbers of documents]
    for k in sorted(range(len(rest)), key=lambda k: -rest[k][1]):
        if rest[k][1]:
            fitting = [pack for pack in packs if pack[0] >= rest[k][1]]
            pack = min(fitting, key=lambda pack: pack[:2]) if fitting else [length, 0, []]
            if not fitting:
                packs.append(pack)
            clock += 1
            pack[0], pack[1], pack[2] = pack[0] - rest[k][1], clock, sorted([*pack[2], k])
    sequences = whole + [[rest[k] for k in pack[2]] for pack in sorted(packs, key=lambda pack: pack[2])]
    return [row_of(documents, mask, sequence, length, pad) for sequence in sequences]


def row_of(documents, mask, pieces, length, pad):
    tokens = [token for document in documents for token in document]
    row = {"tokens": [], "targets": [], "segments": [], "positions": []}
    for number, (first, count) in enumerate(pieces):
        row["tokens"] += tokens[first:first + count]
        row["targets"] += [tokens[i] if mask is None or mask[i] else -100 for i in range(first + 1, first + count + 1)]
        row["segments"] += [number] * count
        row["positions"] += range(count)
    left = length - len(row["tokens"])
    for name, values in (("tokens", [pad] * left), ("targets", [-100] * left), ("segments", [len(pieces)] * left), ("positions", range(left))):
        row[name] += values
    return row


def tensors(path, rows, names):
    """The rows as a safetensors file."""
    head, body = {}, b""
    for name in names:
        values = [value for row in rows for value in row[name]]
        data = struct.pack(f"<{len(values)}i", *values)
        head[name] = {"dtype": "I32", "shape": [len(rows), len(rows[0][name])], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path
