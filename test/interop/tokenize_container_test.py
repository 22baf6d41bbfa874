"""The container .ftd: by an independent reader of its specification, damaged and lying; and files of other programs, there and back."""
import json
import random
import struct
import sys
import unittest

import numpy as np
import xxhash
from safetensors.numpy import load_file
from tokenizers import models, pre_tokenizers

from tokenizing import PACKAGE, TokenizeTest, byte_level, counts_of, documents_of, saved

sys.path.insert(0, str(PACKAGE))
import ft

WIDTHS = {"U64": 8, "I64": 8, "U32": 4, "I32": 4, "F32": 4, "U16": 2, "U8": 1}


def xxh64(content):
    return xxhash.xxh64(content, seed=0).hexdigest()


def read(content):
    """(header, tensors as bytes by name) of a container, by docs/tokenize.md alone."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    return header, {name: data[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


def written(header, data, seal=True):
    """A container of a header and its data, with the header's hash made anew."""
    header["__metadata__"]["xxh64.header"] = "0" * 16
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % 64)
    if seal:
        text = text.replace(b'"xxh64.header":"' + b"0" * 16, b'"xxh64.header":"' + xxh64(text).encode())
    return struct.pack("<Q", len(text)) + text + data


class Containers(TokenizeTest):
    def make(self, kind="chat"):
        folder, _ = self.tokenizer("gpt2")
        records = {"chat": [{"messages": [{"role": "user", "content": "Tell."}, {"role": "assistant", "content": text}]} for text in self.texts[:13]],
                   "text": [{"text": text} for text in self.texts[:13]], "labels": [{"text": text, "label": i} for i, text in enumerate(self.texts[:13])]}[kind]
        self.program(f"--tokenizer={folder}", self.lines(f"{kind}.jsonl", records), "-o", f"{kind}.ftd")
        return (self.folder / f"{kind}.ftd").read_bytes()

    def test_as_the_specification_says(self):
        for kind in ("chat", "text", "labels"):
            content = self.make(kind)
            header, tensors = read(content)
            begin = 8 + struct.unpack("<Q", content[:8])[0]
            self.assertEqual(begin % 64, 0)
            self.assertEqual(written(json.loads(json.dumps(header)), content[begin:]), content)  # the bytes of the header, its order and its hash
            metadata, *names = header
            self.assertEqual((metadata, list(header[metadata])), ("__metadata__", sorted(header[metadata])))
            for name in names:
                entry = header[name]
                self.assertEqual(entry["data_offsets"][0] % WIDTHS[entry["dtype"]], 0)
                self.assertEqual(header[metadata][f"xxh64.{name}"], xxh64(tensors[name]))
            widths = [WIDTHS[header[name]["dtype"]] for name in names]
            self.assertEqual(widths, sorted(widths, reverse=True))
            expected = {"documents", "tokens", "vocabulary.offsets", "vocabulary.bytes", "vocabulary.special"} | {"chat": {"loss_mask"}, "text": set(),
                                                                                                                  "labels": {"input.labels"}}[kind]
            self.assertEqual(set(names), expected)
            self.assertEqual({name: array.tobytes() for name, array in load_file(self.folder / f"{kind}.ftd").items()}, tensors)  # safetensors reads it
            data = ft.open_data(self.folder / f"{kind}.ftd").verify()
            self.assertEqual((data.tokens.tobytes(), data.documents.tobytes()), (tensors["tokens"], tensors["documents"]))
            bits = "".join(f"{byte:08b}"[::-1] for byte in tensors.get("loss_mask", b""))
            ones = [int(bit) for bit in bits[:len(data.tokens)]] or [1] * len(data.tokens)
            self.assertEqual([bit for each in counts_of(data) for bit in each], ones)
            self.assertEqual(int(header[metadata]["counted"]), sum(ones))
            self.assertIn("whole, all checksums agree", self.program("--verify", f"{kind}.ftd")[0])

    def test_every_damage_is_noticed(self):
        draw = random.Random(3)
        content = self.make()
        path = self.folder / "damaged.ftd"
        begin = 8 + struct.unpack("<Q", content[:8])[0]

        def noticed(damaged, what):
            path.write_bytes(damaged)
            with self.assertRaises(ft.DataError, msg=what) as caught:
                ft.open_data(path).verify()
            self.assertEqual(caught.exception.status, 65)
        for length in [*range(0, begin + 65), *range(begin + 65, len(content), 97), len(content) - 1]:
            noticed(content[:length], f"cut at {length}")
        noticed(content + b"\0", "longer")
        for at in [*range(begin), *draw.sample(range(begin, len(content)), 1500)]:
            flipped = bytearray(content)
            flipped[at] ^= 1 << draw.randrange(8)
            noticed(bytes(flipped), f"byte {at} flipped")
        path.write_bytes(content)
        ft.open_data(path).verify()
        path.write_bytes(content[:-1])
        self.refused("no whole .ftd container", "--verify=damaged.ftd")
        self.refused("No such file", "--verify", "none.ftd", status=74)

    def test_lies_that_agree_with_their_checksums(self):
        content = self.make()
        begin = 8 + struct.unpack("<Q", content[:8])[0]

        def lie(pattern, change=None, name=None, edit=None, seal=True):
            header, tensors = read(content)
            if edit:
                array = np.frombuffer(tensors[name], {8: "<u8", 4: "<u4", 2: "<u2", 1: "u1"}[WIDTHS[header[name]["dtype"]]]).copy()
                edit(array)
                tensors[name] = array.tobytes()
                header["__metadata__"][f"xxh64.{name}"] = xxh64(tensors[name])
            if change:
                header = change(header) or header
            (self.folder / "lie.ftd").write_bytes(written(header, b"".join(tensors.values()), seal))
            with self.subTest(pattern), self.assertRaisesRegex(ft.DataError, pattern):
                ft.open_data(self.folder / "lie.ftd").verify()
        said = lambda key, value: lambda header: header["__metadata__"].update({key: value})
        entry = lambda name, key, value: lambda header: header[name].update({key: value})
        count = read(content)[0]["tokens"]["shape"][0]
        for key, value, pattern in (("counted", "1", "tokens count"), ("counted", "-1", "counted is"), ("counted", "01", "counted is"),
                                    ("vocabulary_size", "0", "vocabulary"), ("vocabulary_size", "5", "vocabulary"),
                                    ("vocabulary_size", "70000", "tokens"), ("kind", "novel", "kind"), ("version", "2", "version"), ("format", "pt", "format"),
                                    ("eos_token", "99999", "eos_token"),
                                    ("eos_token", "x", "eos_token"), ("tokenizer_hash", "zz", "tokenizer_hash"),
                                    ("xxh64.tokens", "0" * 16, "tokens does not agree"), ("more", "1", "more"), ("counted", 5, "no string")):
            lie(pattern, said(key, value))
        lie("tokens", entry("tokens", "shape", [count - 1]))
        lie("tokens", entry("tokens", "shape", [1 << 62]))
        lie("tokens", entry("tokens", "shape", [count, True]))
        lie("tokens", entry("tokens", "shape", []))
        lie("tokens", entry("tokens", "shape", "many"))
        lie("tokens", entry("tokens", "dtype", "U8"))
        lie("tokens", entry("tokens", "dtype", ["U16"]))
        lie("tokens", entry("tokens", "data_offsets", [0, 2 * count]))
        lie("tokens", entry("tokens", "data_offsets", [-2, 0]))
        lie("tokens", entry("tokens", "more", 1))
        lie("input.none: U8 .* does not take", lambda header: header.update({"input.none": {"dtype": "U8", "shape": [13, 0], "data_offsets": [0, 0]}}))
        lie("no tensor", lambda header: {key: value for key, value in header.items() if key != "documents"})
        lie("none of a container", lambda header: {**header, "novel": header["tokens"]})
        lie("another order", lambda header: dict([("__metadata__", header.pop("__metadata__")), *sorted(header.items(), reverse=True)]))
        lie("missing", lambda header: header["__metadata__"].pop("xxh64.tokens") and None)
        lie("begins at byte", lambda header: {key: value for key, value in header.items() if key != "vocabulary.special"})
        self.without(content, "vocabulary.special", "vocabulary: of a type or shape")
        self.without(content, "documents", "no tensor documents")
        lie("checksum", seal=False)
        lie("documents do not ascend", name="documents", edit=lambda a: a.__setitem__(1, a[2]))
        lie("documents do not ascend", name="documents", edit=lambda a: a.__setitem__(-1, count + 1))
        lie("documents do not ascend", name="documents", edit=lambda a: a.__setitem__(0, 1))
        lie("vocabulary has", name="tokens", edit=lambda a: a.__setitem__(7, 60000))
        lie("spare bits|tokens count", name="loss_mask", edit=lambda a: a.__setitem__(-1, a[-1] | 0x80))
        lie("tokens count", name="loss_mask", edit=lambda a: a.__setitem__(0, a[0] ^ 1))
        lie("offsets of the vocabulary", name="vocabulary.offsets", edit=lambda a: a.__setitem__(3, 1 << 31))
        lie("special", name="vocabulary.special", edit=lambda a: a.__setitem__(3, 2))
        for text in (b"[]", b"{}", b'{"__metadata__":{"format":"a","format":"b"}}', b"\xff", b"[" * 100000, b'{"__metadata__":[]}',
                     b'{"__metadata__":{"xxh64.header":3}}'):
            text += b" " * (-(8 + len(text)) % 64)
            (self.folder / "lie.ftd").write_bytes(struct.pack("<Q", len(text)) + text + content[begin:])
            with self.assertRaises(ft.DataError):
                ft.open_data(self.folder / "lie.ftd")


    def without(self, content, name, pattern):
        """A tensor and its bytes are left out, and all offsets are those of what is left."""
        header, tensors = read(content)
        tensors.pop(name)
        header.pop(name)
        header["__metadata__"].pop(f"xxh64.{name}")
        begin = 0
        for each, data in tensors.items():
            header[each]["data_offsets"] = [begin, begin + len(data)]
            begin += len(data)
        (self.folder / "lie.ftd").write_bytes(written(header, b"".join(tensors.values())))
        with self.assertRaisesRegex(ft.DataError, pattern):
            ft.open_data(self.folder / "lie.ftd")


def megatron(prefix):
    """(documents, type code) of Megatron's PREFIX.idx and PREFIX.bin."""
    index = prefix.with_suffix(".idx").read_bytes()
    magic, version, code, sequences, marks = struct.unpack("<9sQBQQ", index[:34])
    assert (magic, version) == (b"MMIDIDX\x00\x00", 1)
    lengths, index = struct.unpack(f"<{sequences}i", index[34:34 + 4 * sequences]), index[34 + 4 * sequences:]
    pointers, documents = struct.unpack(f"<{sequences}q", index[:8 * sequences]), struct.unpack(f"<{marks}q", index[8 * sequences:])
    kind = {8: "<u2", 4: "<i4"}[code]
    content = prefix.with_suffix(".bin").read_bytes()
    parts = [np.frombuffer(content, kind, length, pointer).tolist() for length, pointer in zip(lengths, pointers)]
    return [sum(parts[a:b], []) for a, b in zip(documents, documents[1:])], code


class Formats(TokenizeTest):
    def big(self):
        """A tokenizer of 151,936 tokens: bytes, and words of letters."""
        level = pre_tokenizers.ByteLevel.alphabet()
        words = sorted(level) + [f"w{i}" for i in range(151936 - len(level) - 2)]
        tokenizer = byte_level()
        tokenizer.model = models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[])
        tokenizer.add_special_tokens(["<|endoftext|>", "<|im_end|>"])
        self.assertEqual(tokenizer.get_vocab_size(), 151936)
        return saved(tokenizer, self.folder / "big", eos_token="<|endoftext|>", pad_token="<|im_end|>")

    def test_151936_tokens_end_to_end(self):
        folder = self.big()
        source = self.lines("a.jsonl", [{"text": text} for text in self.texts[:50]])
        self.program(f"--tokenizer={folder}", source, "-o", "a.ftd")
        data = ft.open_data(self.folder / "a.ftd").verify()
        self.assertEqual((data.dtype("tokens"), data.metadata["vocabulary_size"], data.metadata["eos_token"], data.metadata["pad_token"]),
                         ("U32", "151936", "151934", "151935"))
        offsets, content, special = data.vocabulary
        self.assertEqual((len(offsets), special.nonzero()[0].tolist()), (151937, [151934, 151935]))
        self.assertEqual(content[offsets[151933]:offsets[151934]].tobytes(), b"w151677")
        self.assertEqual(documents_of(data)[0][-1], 151934)
        for to, name in (("llmc", "b.bin"), ("u32", "b.u32"), ("megatron", "m.idx")):
            self.program("a.ftd", "-o", name, f"--to={to}")
            self.program(name, "-o", "c.ftd", f"--tokenizer={folder}", "--documents=ends-with:151934")
            self.assertEqual((self.folder / "c.ftd").read_bytes(), (self.folder / "a.ftd").read_bytes(), to)
        self.assertEqual(struct.unpack("<3i", (self.folder / "b.bin").read_bytes()[:12]), (20240801, 7, len(data.tokens)))
        self.assertEqual(megatron(self.folder / "m"), (documents_of(data), 4))
        self.refused("do not fit u16", "a.ftd", "-o", "d.u16")

    def test_16_bits_there_and_back(self):
        folder, _ = self.tokenizer("gpt2")
        self.program(f"--tokenizer={folder}", self.lines("a.jsonl", [{"text": text} for text in self.texts[:900]]), "-o", "a.ftd")
        data = ft.open_data(self.folder / "a.ftd").verify()
        whole = (self.folder / "a.ftd").read_bytes()
        for name, words in (("a.bin", ["--to=llmc"]), ("a.u16", []), ("a.u32", []), ("b.bin", ["--to=megatron"]), ("copy.ftd", [])):
            self.program("a.ftd", "-o", name, *words)
            self.program(name, "-o", "c.ftd", f"--tokenizer={folder}", "--documents=ends-with:0")
            self.assertEqual((self.folder / "c.ftd").read_bytes(), whole, name)
        self.program("b.idx", "-o", "c.ftd", f"--tokenizer={folder}")
        self.assertEqual((self.folder / "c.ftd").read_bytes(), whole)
        self.assertEqual((self.folder / "a.bin").read_bytes()[:1024], struct.pack("<3i", 20240520, 1, len(data.tokens)).ljust(1024, b"\0"))
        self.assertEqual((self.folder / "a.bin").read_bytes()[1024:], data.tokens.tobytes())
        self.assertEqual((self.folder / "a.u16").read_bytes(), data.tokens.tobytes())
        self.assertEqual((self.folder / "a.u32").read_bytes(), data.tokens.astype("<u4").tobytes())
        self.assertEqual(megatron(self.folder / "b"), (documents_of(data), 8))
        self.program("a.bin", "-o", "c.ftd", "--documents=begins-with:0")
        bare = ft.open_data(self.folder / "c.ftd").verify()
        self.assertEqual((bare.vocabulary, bare.metadata["tokenizer_hash"], bare.metadata["vocabulary_size"]), (None, "", str(int(data.tokens.max()) + 1)))
        self.assertTrue(all(tokens[0] == 0 for tokens in documents_of(bare)[1:]))
        self.program("a.ftd", "a.ftd", "-o", "twice.ftd")
        self.assertEqual(documents_of(ft.open_data(self.folder / "twice.ftd").verify()), documents_of(data) * 2)

    def test_masks_and_labels_in_files_put_together(self):
        folder, _ = self.tokenizer("gpt2")
        for name, field in (("m", {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bcd"}]}),
                            ("l", {"text": "abc", "label": 2})):
            self.program(f"--tokenizer={folder}", self.lines(f"{name}.jsonl", [field] * 3), "-o", f"{name}.ftd")
            self.program(f"{name}.ftd", f"{name}.ftd", "-o", "two.ftd")
            one, two = ft.open_data(self.folder / f"{name}.ftd"), ft.open_data(self.folder / "two.ftd").verify()
            self.assertEqual((documents_of(two), counts_of(two), two.metadata["kind"]), (documents_of(one) * 2, counts_of(one) * 2, one.metadata["kind"]))
            self.assertEqual([array.tolist() for array in two.inputs.values()], [array.tolist() * 2 for array in one.inputs.values()])
        self.refused("says which tokens count", "m.ftd", "-o", "m.u16")
        self.refused("has labels beside tokens", "l.ftd", "-o", "l.u16")
        self.refused("of different kinds", "m.ftd", "l.ftd", "-o", "x.ftd")
        self.program("m.ftd", "-o", "m.u16", "--loss-on=all")
        self.program("l.ftd", "-o", "l.u16", "--label-key=")
        self.assertEqual((self.folder / "m.u16").read_bytes(), ft.open_data(self.folder / "m.ftd").tokens.tobytes())

    def test_files_of_tokens_that_are_refused(self):
        folder, _ = self.tokenizer("gpt2")
        other, _ = self.tokenizer("llama3")
        self.program(f"--tokenizer={folder}", self.lines("a.jsonl", [{"text": "abc"}] * 3), "-o", "a.ftd")
        self.program("a.ftd", "-o", "good.bin", "--to=llmc")
        self.program("a.ftd", "-o", "m.idx")
        good, index = (self.folder / "good.bin").read_bytes(), (self.folder / "m.idx").read_bytes()
        tokens = (self.folder / "m.bin").read_bytes()
        cases = [("a.bin", good[:-1], "no multiple of 2"), ("a.bin", good[:-2], "header says"), ("a.bin", good[:1000], "no header of 1024"),
                 ("a.bin", good[:4] + b"\2" + good[5:], "magic 20240520, version 2"),
                 ("a.bin", struct.pack("<3i", 20240520, 1, 0).ljust(1024, b"\0"), "has no tokens"), ("a.u16", b"", "has no tokens"),
                 ("a.u16", b"\1", "no multiple of 2"), ("a.u32", b"\1\2", "no multiple of 4"),
                 ("a.u16", b"\xff\xff", "token 65535, and the vocabulary has"), ("x.idx", index, "x.bin"), ("n.idx", index[:-1], "take"),
                 ("n.idx", b"TNTIDX" + index[6:], "MMIDIDX"), ("n.idx", index[:9] + b"\2" + index[10:], "version 2"),
                 ("n.idx", index[:17] + b"\7" + index[18:], "type 7"), ("n.idx", index[:18] + struct.pack("<Q", 1 << 60) + index[26:], "take"),
                 ("n.idx", index[:34] + b"\5" + index[35:], "follow each other"), ("n.idx", index[:-8] + struct.pack("<q", 2), "documents do not ascend")]
        (self.folder / "n.bin").write_bytes(tokens)
        for name, content, pattern in cases:
            with self.subTest(pattern):
                (self.folder / name).write_bytes(content)
                self.refused(pattern, name, f"--tokenizer={folder}", "-o", "x.ftd", status=74 if name == "x.idx" else 65)
        self.refused("different tokenizers", "a.ftd", f"--tokenizer={other}", "-o", "x.ftd")
        self.refused("has no token 77", "good.bin", "--documents=ends-with:77", "-o", "x.ftd")
        self.refused("does not tell the format", "a.ftd", "-o", "x.bin", status=2)
        self.refused("text becomes .ftd first", f"--tokenizer={folder}", "a.jsonl", "-o", "x.u16", status=2)
        self.refused("do not make one file", f"--tokenizer={folder}", "a.jsonl", "a.ftd", "-o", "x.ftd")
        self.refused("is to be read and written", "a.ftd", "-o", "a.ftd", status=2)


if __name__ == "__main__":
    unittest.main()
