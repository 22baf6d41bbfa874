"""Reads an .ftd container: maps it, holds its header to the specification, and verifies all of its bytes."""
import json
import mmap
import re

import numpy as np
import xxhash

from ..errors import DataError
from .container import BLOCK, KINDS, ORDER, TYPES, header_hash, place_of, size_of, token_type

HEADER_MOST = 100_000_000
NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
INPUT = re.compile(r"input\.[A-Za-z_][A-Za-z0-9_]{0,63}")
KNOWN = {"format", "version", "kind", "vocabulary_size", "tokenizer_hash", "bos_token", "eos_token", "pad_token", "counted", "xxh64.header"}


def without_twins(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


class Data:
    """A container, mapped. What the header says is checked when it is opened, what the bytes are by verify().

    tokens      array of u16 or u32
    documents   array of u64: where documents begin, and the end
    loss_mask   packed bits, or None: all count
    inputs      name -> array with a row for each document
    vocabulary  (offsets, bytes, special), or None
    metadata    the strings of the header
    """

    def __init__(self, path):
        self.path = path
        try:
            with open(path, "rb") as file:
                self.size = file.seek(0, 2)
                self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else b""
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}", 74) from None
        content = self.header()
        self.metadata = self.checked_metadata(content.pop("__metadata__"))
        self.begins = {}
        self.tensors = {name: self.tensor(name, entry) for name, entry in content.items()}
        self.check_layout()
        self.tokens, self.documents = self.tensors["tokens"], self.tensors["documents"]
        self.loss_mask = self.tensors.get("loss_mask")
        self.inputs = {name[6:]: array for name, array in self.tensors.items() if name.startswith("input.")}
        parts = [self.tensors.get(f"vocabulary.{part}") for part in ("offsets", "bytes", "special")]
        self.vocabulary = None if parts[0] is None else tuple(parts)
        self.check_shapes()

    def damaged(self, what):
        return DataError(f"{self.path}: no whole .ftd container: {what}")

    def header(self):
        if self.size < 8:
            raise self.damaged(f"it has {self.size} bytes")
        length = int.from_bytes(self.map[:8], "little")
        if length > min(self.size - 8, HEADER_MOST) or (8 + length) % 64:
            raise self.damaged(f"its first 8 bytes say a header of {length} bytes; the file has {self.size}")
        text, self.begin = self.map[8:8 + length], 8 + length
        try:
            content = json.loads(text.decode(), object_pairs_hook=without_twins)
            said = content["__metadata__"]["xxh64.header"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self.damaged(f"the header is no JSON of a container ({error})") from None
        mark = f'"xxh64.header":"{said}"'.encode()
        if not isinstance(said, str) or not re.fullmatch("[0-9a-f]{16}", said) or text.count(mark) != 1:
            raise self.damaged("the header's checksum is not 16 hexadecimal digits, once")
        if header_hash(text.replace(mark, b'"xxh64.header":"' + b"0" * 16 + b'"')) != said:
            raise self.damaged("the header does not agree with its checksum")
        return content

    def checked_metadata(self, found):
        if not all(isinstance(value, str) for value in found.values()):
            raise self.damaged("a value of __metadata__ is no string")
        if found.get("format") != "ftd" or found.get("version") != "1":
            raise self.damaged(f"format {found.get('format')!r}, version {found.get('version')!r}; this reads ftd, version 1")
        for key in ("vocabulary_size", "counted", "bos_token", "eos_token", "pad_token"):
            if (key in found or not key.endswith("_token")) and not NUMBER.fullmatch(found.get(key, "")):
                raise self.damaged(f"{key} is {found.get(key)!r}, no number")
        if found.get("kind") not in KINDS or not re.fullmatch("([0-9a-f]{16})?", found.get("tokenizer_hash", "?")):
            raise self.damaged(f"kind {found.get('kind')!r}, tokenizer_hash {found.get('tokenizer_hash')!r}")
        return found

    def tensor(self, name, entry):
        """The array of an entry, checked for its bounds alone."""
        if not (name in ORDER[:1] + ORDER[2:] or INPUT.fullmatch(name)):
            raise self.damaged(f"tensor {name!r} is none of a container")
        keys = {"dtype", "shape", "data_offsets"}
        if not isinstance(entry, dict) or set(entry) != keys or entry["dtype"] not in list(TYPES):
            raise self.damaged(f"tensor {name}: not dtype, shape and data_offsets, or of a type that containers have not")
        numbers = [*entry["shape"], *entry["data_offsets"]] if isinstance(entry["shape"], list) and isinstance(entry["data_offsets"], list) else [None]
        possible = all(type(number) is int and 0 <= number <= self.size for number in numbers)
        if not possible or len(entry["data_offsets"]) != 2 or not 1 <= len(entry["shape"]) <= 8:
            raise self.damaged(f"tensor {name}: shape {entry['shape']}, bytes {entry['data_offsets']}, in a file of {self.size} bytes")
        count = 1
        for extent in entry["shape"]:
            count *= extent
        begin, end = entry["data_offsets"]
        self.begins[name] = self.begin + begin
        if not count or end - begin != count * size_of(entry["dtype"]) or self.begin + end > self.size:
            raise self.damaged(f"tensor {name}: {entry['dtype']} {entry['shape']} does not take bytes {begin} to {end}")
        return np.frombuffer(self.map, TYPES[entry["dtype"]], count, self.begin + begin).reshape(entry["shape"])

    def check_layout(self):
        """Tensors fill the data in their order, and each has a hash."""
        end = self.begin
        names = list(self.tensors)
        if missing := {"tokens", "documents"} - set(names):
            raise self.damaged(f"there is no tensor {missing.pop()}")
        if names != sorted(names, key=lambda name: place_of(name, self.dtype(name))):
            raise self.damaged(f"tensors in another order: {', '.join(names)}")
        for name, array in self.tensors.items():
            if self.begins[name] != end:
                raise self.damaged(f"tensor {name} begins at byte {self.begins[name]}, not at {end}")
            end += array.nbytes
        if end != self.size:
            raise self.damaged(f"it has {self.size} bytes, and its tensors end at {end}")
        wanted = {f"xxh64.{name}" for name in names}
        if unknown := (set(self.metadata) ^ wanted) - KNOWN:
            raise self.damaged(f"{unknown.pop()} is missing in __metadata__, or is none of a container")

    def dtype(self, name):
        return next(code for code, kind in TYPES.items() if np.dtype(kind) == self.tensors[name].dtype)

    def check_shapes(self):
        size, n, d = int(self.metadata["vocabulary_size"]), self.tokens.size, self.documents.size - 1
        wrong = [name for name, array in self.tensors.items() if not name.startswith("input.") and array.ndim != 1]
        types = {"documents": "U64", "tokens": token_type(size), "loss_mask": "U8", "vocabulary.offsets": "U32", "vocabulary.bytes": "U8",
                 "vocabulary.special": "U8"}
        wrong += [name for name, dtype in types.items() if name in self.tensors and self.dtype(name) != dtype]
        wrong += [f"input.{name}" for name, array in self.inputs.items() if len(array) != d]
        if self.loss_mask is not None and self.loss_mask.size != (n + 7) // 8:
            wrong.append("loss_mask")
        parts = [f"vocabulary.{part}" in self.tensors for part in ("offsets", "bytes", "special")]
        if any(parts) and (not all(parts) or self.vocabulary[0].size != size + 1 or self.vocabulary[2].size != size):
            wrong.append("vocabulary")
        if wrong or d < 1 or not n or not size:
            raise self.damaged(f"{', '.join(wrong) or 'documents, tokens or vocabulary'}: of a type or shape that containers have not ({d} documents, {n} "
                               f"tokens, vocabulary {size})")

    def counts(self, begin=0, end=None):
        """0 or 1 for each token from `begin` to `end`: whether it counts as a target."""
        end = self.tokens.size if end is None else end
        if self.loss_mask is None:
            return np.ones(end - begin, "u1")
        bits = np.unpackbits(self.loss_mask[begin // 8:(end + 7) // 8], bitorder="little")
        return bits[begin % 8:begin % 8 + end - begin]

    def text(self, begin, end):
        """The bytes of tokens; None without a vocabulary."""
        if self.vocabulary is None:
            return None
        offsets, data, _ = self.vocabulary
        return b"".join(data[offsets[token]:offsets[token + 1]].tobytes() for token in self.tokens[begin:end].astype(int))

    def verify(self):
        """Reads everything; DataError at the first thing that is not as the specification has it. Returns the container."""
        for name, array in self.tensors.items():
            digest, flat = xxhash.xxh64(seed=0), array.reshape(-1)
            for begin in range(0, flat.size, BLOCK):
                digest.update(flat[begin:begin + BLOCK].data)
            if digest.hexdigest() != self.metadata[f"xxh64.{name}"]:
                raise self.damaged(f"tensor {name} does not agree with its checksum")
        size = int(self.metadata["vocabulary_size"])
        if int(self.documents[0]) or int(self.documents[-1]) != self.tokens.size or np.any(self.documents[1:] <= self.documents[:-1]):
            raise self.damaged(f"documents do not ascend from 0 to the {self.tokens.size} tokens")
        for begin in range(0, self.tokens.size, BLOCK):
            if (most := int(self.tokens[begin:begin + BLOCK].max())) >= size:
                raise self.damaged(f"a token {most}, and the vocabulary has {size}")
        for key in ("bos_token", "eos_token", "pad_token"):
            if int(self.metadata.get(key, 0)) >= size:
                raise self.damaged(f"{key} is {self.metadata[key]}, and the vocabulary has {size}")
        self.verify_mask()
        if self.vocabulary is not None:
            offsets, data, special = self.vocabulary
            if int(offsets[0]) or int(offsets[-1]) != data.size or np.any(offsets[1:] < offsets[:-1]) or special.max() > 1:
                raise self.damaged("offsets of the vocabulary do not ascend from 0 to its bytes, or special is neither 0 nor 1")
        return self

    def verify_mask(self):
        counted, n = self.tokens.size, self.tokens.size
        if self.loss_mask is not None:
            counted = sum(int(np.count_nonzero(self.counts(begin, min(begin + BLOCK, n)))) for begin in range(0, n, BLOCK))
            if n % 8 and int(self.loss_mask[-1]) >> n % 8:
                raise self.damaged("spare bits of the loss mask are not 0")
        if counted != int(self.metadata["counted"]):
            raise self.damaged(f"{counted} tokens count, and the header says {self.metadata['counted']}")
