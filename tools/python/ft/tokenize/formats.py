"""Token files of other programs, read and written: llm.c's (.bin), headerless u16 and u32 (nanoGPT's), Megatron's (.bin with .idx), and .ftd."""
import pathlib
import struct

import numpy as np

from ..errors import DataError
from .container import BLOCK, Beside
from .data import Data

LLMC = {(20240520, 1): "<u2", (20240801, 7): "<u4"}
MEGATRON = b"MMIDIDX\x00\x00"
MEGATRON_TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
MEGATRON_U16_BELOW = 65500  # above, Megatron's own writer takes i32


class Source:
    """Tokens of a file, mapped, and the lengths of its documents (None: not said). `data` is the container where it is one."""

    def __init__(self, path, tokens, lengths=None, data=None):
        self.path, self.tokens, self.lengths, self.data = path, tokens, lengths, data
        if not len(tokens):
            raise DataError(f"{path}: has no tokens")

    def blocks(self):
        for begin in range(0, len(self.tokens), BLOCK):
            yield begin, np.asarray(self.tokens[begin:begin + BLOCK])

    def greatest(self):
        """The greatest token. DataError where one is negative, or wider than u32."""
        most = 0
        for begin, block in self.blocks():
            low, high = int(block.min()), int(block.max())
            if low < 0 or high >= 1 << 32:
                place = begin + int(np.flatnonzero((block < 0) | (block.astype("f8") >= 2.0**32))[0])
                raise DataError(f"{self.path}: token {place} is {int(self.tokens[place])}, no id")
            most = max(most, high)
        return most


def mapped(path, dtype, offset=0, what="tokens"):
    try:
        size = pathlib.Path(path).stat().st_size - offset
        if size < 0 or size % np.dtype(dtype).itemsize:
            raise DataError(f"{path}: its {size} bytes of {what} are no multiple of {np.dtype(dtype).itemsize}")
        return np.memmap(path, dtype, "r", offset) if size else np.zeros(0, dtype)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}", 74) from None


def read(path, form):
    """A Source of a file of tokens."""
    if form == "ftd":
        data = Data(path).verify()
        return Source(path, data.tokens, np.diff(data.documents), data)
    if form == "llmc":
        return Source(path, read_llmc(path))
    if form == "megatron":
        return Source(path, *read_megatron(path))
    return Source(path, mapped(path, "<u2" if form == "u16" else "<u4"))


def read_llmc(path):
    header = mapped(path, "u1")[:1024].tobytes()
    if len(header) < 1024:
        raise DataError(f"{path}: no file of llm.c: it has no header of 1024 bytes")
    magic, version, count = struct.unpack("<3i", header[:12])
    if (magic, version) not in LLMC:
        raise DataError(f"{path}: no file of llm.c: magic {magic}, version {version}; known are 20240520 with 1, 20240801 with 7")
    tokens = mapped(path, LLMC[magic, version], 1024)
    if len(tokens) != count:
        raise DataError(f"{path}: its header says {count} tokens, and it has {len(tokens)}")
    return tokens


def read_megatron(path):
    """(tokens, lengths of documents) of PREFIX.idx and PREFIX.bin."""
    path = pathlib.Path(path).with_suffix(".idx")
    index = mapped(path, "u1").tobytes()
    wrong = lambda what: DataError(f"{path}: no index of Megatron: {what}")
    if len(index) < 34 or index[:9] != MEGATRON:
        raise wrong("it does not begin with MMIDIDX")
    version, code, sequences, marks = struct.unpack("<QBQQ", index[9:34])
    if version != 1 or code not in MEGATRON_TYPES:
        raise wrong(f"version {version}, type {code}; read are version 1, types of whole numbers")
    end = 34 + 12 * sequences + 8 * marks
    if len(index) != end or marks < 1:
        modes = len(index) == end + sequences and not any(index[end:])
        if not modes:
            raise wrong(f"{sequences} sequences and {marks} marks of documents take {end} bytes, and it has {len(index)}")
    lengths = np.frombuffer(index, "<i4", sequences, 34).astype("<i8")
    pointers = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    documents = np.frombuffer(index, "<i8", marks, 34 + 12 * sequences)
    tokens = mapped(path.with_suffix(".bin"), MEGATRON_TYPES[code])
    ends = np.cumsum(lengths)
    begins, last = (ends - lengths) * np.dtype(MEGATRON_TYPES[code]).itemsize, ends[-1] if sequences else 0
    if np.any(lengths < 0) or not np.array_equal(pointers, begins) or last != len(tokens):
        raise wrong(f"its sequences do not follow each other through the {len(tokens)} tokens of {path.with_suffix('.bin')}")
    if documents[0] or documents[-1] != sequences or np.any(np.diff(documents) < 0):
        raise wrong(f"its documents do not ascend from 0 to the {sequences} sequences")
    return tokens, np.diff(np.concatenate([[0], ends])[documents])


def split_at(source, rule):
    """Lengths of documents by a token that each ends with, or begins with; one document where there is no rule."""
    n = len(source.tokens)
    if rule.name not in ("ends-with", "begins-with"):
        return np.array([n]) if source.lengths is None else source.lengths
    found = np.concatenate([begin + np.flatnonzero(block == rule.token) for begin, block in source.blocks()])
    if not len(found):
        raise DataError(f"{source.path}: has no token {rule.token}, by which --documents={rule.text} divides it")
    bounds = found + 1 if rule.name == "ends-with" else found
    bounds = np.unique(np.concatenate([[0], bounds, [n]]))
    return np.diff(bounds)


def write(path, form, sources, vocabulary_size):
    """Tokens of sources as a file of another program; returns how many."""
    count = sum(len(source.tokens) for source in sources)
    wide = form == "u32" or form == "llmc" and vocabulary_size > 1 << 16 or form == "megatron" and vocabulary_size >= MEGATRON_U16_BELOW
    dtype = "<u2" if not wide else "<i4" if form == "megatron" else "<u4"
    if not wide and max(source.greatest() for source in sources) > 0xFFFF:
        raise DataError(f"{path}: tokens above 65535 do not fit {form}; take u32")
    if form == "megatron":
        path = pathlib.Path(path).with_suffix(".bin")
    with Beside(path) as output:
        if form == "llmc":
            if count >= 1 << 31:
                raise DataError(f"{path}: llm.c's header counts to 2147483647 tokens, and these are {count}; write several files")
            magic, version = next(key for key, value in LLMC.items() if value == dtype)
            output.write(struct.pack("<3i", magic, version, count).ljust(1024, b"\0"))
        for source in sources:
            for _, block in source.blocks():
                output.write(block.astype(dtype).tobytes())
    if form == "megatron":
        write_index(path.with_suffix(".idx"), np.concatenate([source.lengths for source in sources]), np.dtype(dtype))
    return count


def write_index(path, lengths, dtype):
    """Each document is a sequence."""
    code = next(code for code, kind in MEGATRON_TYPES.items() if np.dtype(kind) == dtype)
    if len(lengths) and int(lengths.max()) >= 1 << 31:
        raise DataError(f"{path}: Megatron's index has 31 bits for a document's length, and one has {int(lengths.max())} tokens")
    ends = np.cumsum(lengths.astype("<i8"))
    with Beside(path) as output:
        output.write(MEGATRON + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1))
        output.write(lengths.astype("<i4").tobytes() + ((ends - lengths.astype("<i8")) * dtype.itemsize).astype("<i8").tobytes())
        output.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())
