"""The container .ftd, version 1: a safetensors file with tokens, documents and what counts (docs/tokenize.md specifies it). Its layout, and a writer."""
import json
import os
import pathlib
import tempfile

import numpy as np
import xxhash

from ..errors import DataError

TYPES = {"U64": "<u8", "I64": "<i8", "U32": "<u4", "I32": "<i4", "F32": "<f4", "U16": "<u2", "U8": "u1"}
ORDER = ("documents", "input.", "vocabulary.offsets", "vocabulary.bytes", "vocabulary.special", "tokens", "loss_mask")
KINDS = ("text", "conversations", "sequences")
BLOCK = 1 << 22


def size_of(dtype):
    return np.dtype(TYPES[dtype]).itemsize


def place_of(name, dtype):
    """Where a tensor stands in the data: wide types first, then as ORDER has them, inputs by name."""
    group = next(i for i, each in enumerate(ORDER) if name == each or each.endswith(".") and name.startswith(each))
    return -size_of(dtype), group, name


def token_type(vocabulary_size):
    return "U16" if vocabulary_size <= 1 << 16 else "U32"


def header_of(metadata, tensors):
    """The header's bytes, padded and with its own hash. `tensors` has (name, dtype, shape) in the order of the data."""
    content, begin = {"__metadata__": dict(sorted({**metadata, "xxh64.header": "0" * 16}.items()))}, 0
    for name, dtype, shape in tensors:
        end = begin + int(np.prod(shape, dtype=np.int64)) * size_of(dtype)
        content[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return text.replace(b'"xxh64.header":"' + b"0" * 16, b'"xxh64.header":"' + header_hash(text).encode(), 1)


def header_hash(text):
    """XXH64 of a header in which the digits of its own hash are zeros."""
    return xxhash.xxh64(text, seed=0).hexdigest()


class Section:
    """A tensor that grows, in a file without a name beside the output: it goes when the process does."""

    def __init__(self, folder, dtype):
        self.file = tempfile.TemporaryFile(dir=folder)
        self.dtype, self.count, self.digest = dtype, 0, xxhash.xxh64(seed=0)

    def add(self, array):
        array = np.ascontiguousarray(array, TYPES[self.dtype])
        self.file.write(array.data)
        self.digest.update(array.data)
        self.count += array.size

    def copy_to(self, output):
        self.file.seek(0)
        while block := self.file.read(BLOCK):
            output.write(block)
        self.file.close()


class Mask:
    """Bits of which tokens count, least significant first, packed over the borders of documents."""

    def __init__(self, folder):
        self.section, self.rest, self.counted = Section(folder, "U8"), np.zeros(0, "u1"), 0

    def add(self, counts):
        self.counted += int(np.count_nonzero(counts))
        counts = np.concatenate([self.rest, counts])
        whole = counts.size - counts.size % 8
        self.section.add(np.packbits(counts[:whole], bitorder="little"))
        self.rest = counts[whole:]

    def end(self):
        self.section.add(np.packbits(self.rest, bitorder="little"))
        self.rest = self.rest[:0]


class Facts:
    """What is said of the data beside the tokens: kind, vocabulary, special tokens.

    kind         "text", "conversations" or "sequences"
    size, hash   of the vocabulary; "" where no tokenizer is known
    bos, eos, pad  ids or None
    vocabulary   (offsets, bytes, special), or None
    masked       whether a loss mask is kept
    inputs       other inputs by name: dtype and the shape of a row
    """

    def __init__(self, kind, size, hash="", bos=None, eos=None, pad=None, vocabulary=None, masked=False, inputs=()):
        self.kind, self.size, self.hash, self.vocabulary, self.masked = kind, size, hash, vocabulary, masked
        self.bos, self.eos, self.pad, self.inputs = bos, eos, pad, dict(inputs)

    def metadata(self):
        ids = {f"{name}_token": str(value) for name, value in (("bos", self.bos), ("eos", self.eos), ("pad", self.pad)) if value is not None}
        return {"format": "ftd", "version": "1", "kind": self.kind, "vocabulary_size": str(self.size), "tokenizer_hash": self.hash, **ids}


class Beside:
    """A file that is written beside its place, and renamed when it is whole: `with Beside(path) as output: output.write(...)`."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def __enter__(self):
        self.file = open(self.part, "wb")
        return self.file

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.file.flush()
                os.fsync(self.file.fileno())
                self.file.close()
                os.replace(self.part, self.path)
        finally:
            self.file.close()
            self.part.unlink(missing_ok=True)


class Writer:
    """Takes documents in order, and writes the container when all are there. It can be finished once."""

    def __init__(self, path, facts):
        self.path, self.facts = pathlib.Path(path), facts
        folder = self.path.parent
        self.tokens, self.ends = Section(folder, token_type(facts.size)), Section(folder, "U64")
        self.ends.add(np.zeros(1, "<u8"))
        self.mask = Mask(folder) if facts.masked else None
        self.inputs = {name: Section(folder, dtype) for name, (dtype, _) in facts.inputs.items()}

    def add_tokens(self, tokens, counts=None):
        """Tokens of whatever width, inside the vocabulary; `counts` is 0 or 1 for each where a mask is kept."""
        self.tokens.add(tokens)
        if self.mask:
            self.mask.add(np.ones(len(tokens), "u1") if counts is None else counts)

    def add_documents(self, lengths, inputs=None):
        """Lengths, none of them 0, of the next documents; a row of each input for each."""
        last = self.last if self.ends.count > 1 else 0
        ends = last + np.cumsum(np.asarray(lengths, "<u8"), dtype="<u8")
        if len(ends):
            self.last = int(ends[-1])
            self.ends.add(ends)
        for name, section in self.inputs.items():
            section.add(inputs[name])

    def sections(self):
        """(name, dtype, shape, what has copy_to or is an array, hash) of each tensor, in the order of the data."""
        documents = self.ends.count - 1
        found = [("documents", "U64", [documents + 1], self.ends), ("tokens", self.tokens.dtype, [self.tokens.count], self.tokens)]
        found += [(f"input.{name}", self.facts.inputs[name][0], [documents, *self.facts.inputs[name][1]], section) for name, section in self.inputs.items()]
        if self.mask:
            found.append(("loss_mask", "U8", [self.mask.section.count], self.mask.section))
        if self.facts.vocabulary is not None:
            for name, dtype, array in zip(("offsets", "bytes", "special"), ("U32", "U8", "U8"), self.facts.vocabulary):
                section = Section(self.path.parent, dtype)
                section.add(array)
                found.append((f"vocabulary.{name}", dtype, [section.count], section))
        return sorted(found, key=lambda each: place_of(each[0], each[1]))

    def finish(self):
        """Writes the file; returns a dict of what is in it. DataError when there is no document."""
        if self.ends.count == 1:
            raise DataError(f"{self.path}: not written: there is no document with tokens in what was read")
        if self.last != self.tokens.count:
            raise AssertionError(f"documents end at {self.last} of {self.tokens.count} tokens")
        if self.mask:
            self.mask.end()
        counted = self.mask.counted if self.mask else self.tokens.count
        sections = self.sections()
        metadata = {**self.facts.metadata(), "counted": str(counted), **{f"xxh64.{name}": section.digest.hexdigest() for name, _, _, section in sections}}
        header = header_of(metadata, [(name, dtype, shape) for name, dtype, shape, _ in sections])
        with Beside(self.path) as output:
            output.write(len(header).to_bytes(8, "little") + header)
            for *_, section in sections:
                section.copy_to(output)
        return {"path": str(self.path), "kind": self.facts.kind, "documents": self.ends.count - 1, "tokens": self.tokens.count, "counted": counted,
                "type": self.tokens.dtype, "vocabulary_size": self.facts.size, "tokenizer_hash": self.facts.hash}
