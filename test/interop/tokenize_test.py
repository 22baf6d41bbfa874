"""Tokens of ft-tokenize against transformers' tokenizers: texts, awkward Unicode, what goes before and behind, documents of files, labels."""
import gzip
import io
import itertools
import json
import random
import struct
import subprocess
import sys
import unittest

import numpy as np
import pyarrow
import pyarrow.parquet
import xxhash

from tokenizing import AWKWARD, PACKAGE, KINDS, TokenizeTest, documents_of, environment

sys.path.insert(0, str(PACKAGE))
import ft
from ft.tokenize import readers


class Tokens(TokenizeTest):
    def test_tokens_and_text_are_those_of_transformers(self):
        texts = self.texts + AWKWARD
        source = self.lines("texts.jsonl", [{"text": text} for text in texts])
        for kind in KINDS:
            with self.subTest(kind):
                folder, theirs = self.tokenizer(kind)
                self.program(f"--tokenizer={folder}", source, "-o", "data.ftd")
                data = ft.open_data(self.folder / "data.ftd").verify()
                expected = theirs(texts).input_ids
                if kind != "wordpiece":  # which names no end of text
                    expected = [ids if ids[-1] == theirs.eos_token_id else ids + [theirs.eos_token_id] for ids in expected]
                ours = documents_of(data)
                self.assertEqual(len(ours), len(expected))
                for text, got, wanted in zip(texts, ours, expected):
                    self.assertEqual(got, wanted, repr(text[:80]))
                self.check_text(kind, theirs, data, texts)

    def check_text(self, kind, theirs, data, texts):
        """Bytes of the vocabulary, put together, are what the tokenizer decodes; of byte-level ones the very text."""
        offsets, content, special = data.vocabulary
        self.assertEqual({i for i in range(len(special)) if special[i]}, set(theirs.all_special_ids) | {i for i, token in theirs.added_tokens_decoder.items()
                                                                                                        if token.special})
        for text, ids in zip(texts, documents_of(data)):
            kept = [i for i in ids if not special[i]]
            made = b"".join(content[offsets[i]:offsets[i + 1]].tobytes() for i in kept)
            if kind in ("gpt2", "llama3"):
                wanted = text.replace("<|endoftext|>", "")
                self.assertEqual(made, wanted.encode(), repr(text[:80]))
            else:
                wanted = theirs.decode(kept, clean_up_tokenization_spaces=False)
                made = made[1:] if made.startswith(b" ") else made
                self.assertEqual(made.decode(errors="replace"), wanted, repr(text[:80]))

    def test_hash_of_a_tokenizer(self):
        for kind in KINDS:
            folder, theirs = self.tokenizer(kind)
            self.program(f"--tokenizer={folder / 'tokenizer.json'}", "--prompt=Once upon a time", "-o", "p.ftd")
            data = ft.open_data(self.folder / "p.ftd").verify()
            made = xxhash.xxh64(seed=0)
            for token, i in sorted(theirs.get_vocab().items(), key=lambda pair: pair[1]):
                made.update(struct.pack("<II", i, len(token.encode())) + token.encode())
            self.assertEqual(data.metadata["tokenizer_hash"], made.hexdigest())
            self.assertEqual(int(data.metadata["vocabulary_size"]), len(theirs))
            self.assertEqual(documents_of(data), [theirs("Once upon a time").input_ids])

    def test_the_same_bytes_for_any_number_of_processes(self):
        folder, _ = self.tokenizer("gpt2")
        texts = self.lines("texts.jsonl", [{"text": text} for text in self.texts])
        chats = self.lines("chats.jsonl", [{"messages": [{"role": "user", "content": "Tell me."}, {"role": "assistant", "content": text}]}
                                           for text in self.texts])
        labels = self.lines("labels.jsonl", [{"text": text, "label": i % 3} for i, text in enumerate(self.texts)])
        for source in (texts, chats, labels):
            made = set()
            for processes in (1, 2, 3):
                self.program(f"--tokenizer={folder}", source, "-o", f"{processes}.ftd", f"--processes={processes}")
                made.add((self.folder / f"{processes}.ftd").read_bytes())
            self.assertEqual(len(made), 1)
            self.assertEqual(ft.open_data(self.folder / "1.ftd").verify().documents.size - 1, len(self.texts))

    def test_what_goes_before_and_behind(self):
        texts = self.texts[:40] + ["a"]
        source = self.lines("texts.jsonl", [{"text": text} for text in texts])
        for kind, eos, bos, most in itertools.product(("gpt2", "llama3", "unigram", "wordpiece"), ("on", "off", None), ("auto", "on", "off"), (None, 3, 20)):
            folder, theirs = self.tokenizer(kind)
            make = lambda: ft.tokenize(source, self.folder / "data.ftd", tokenizer=folder, append_eos=eos, prepend_bos=bos, max_length=most, processes=1)
            with self.subTest(kind=kind, eos=eos, bos=bos, most=most):
                if bos == "on" and theirs.bos_token_id is None or eos == "on" and theirs.eos_token_id is None or kind == "unigram" and eos == "off":
                    with self.assertRaisesRegex(ft.DataError, "names no (bos|eos)_token|ends each text with its end-of-text token itself"):
                        make()
                else:
                    make()
                    self.assertEqual(documents_of(ft.open_data(self.folder / "data.ftd").verify()),
                                     [self.expected(theirs, text, eos, bos, most) for text in texts])

    def expected(self, theirs, text, eos, bos, most):
        """By transformers: whole, or cut as it cuts; an end where nothing was cut."""
        begins = [theirs.bos_token_id] if theirs("").input_ids[:1] == [theirs.bos_token_id] else []
        room = None if most is None else most + (len(begins) if bos == "off" else 0)
        ids, whole = theirs(text, truncation=most is not None, max_length=room).input_ids, theirs(text).input_ids
        cut = len(ids) < len(whole)
        ids = ids[len(begins):] if bos == "off" else ids if bos == "auto" or begins else [theirs.bos_token_id, *ids]
        if eos != "off" and theirs.eos_token_id is not None and not cut and ids[-1:] != [theirs.eos_token_id]:
            ids = [*ids, theirs.eos_token_id]
        return ids[:most]


class Files(TokenizeTest):
    def texts_of(self, *words):
        folder, _ = self.tokenizer("gpt2")
        self.program(f"--tokenizer={folder}", "--append-eos=off", *words, "-o", "data.ftd")
        data = ft.open_data(self.folder / "data.ftd").verify()
        return [data.text(a, b).decode() for a, b in zip(data.documents[:-1].astype(int), data.documents[1:].astype(int))]

    def test_documents_of_text_files(self):
        text = "one\ntwo\r\n\n three \n\t\n\nfour\rfour\n\n\n" + "long " * 50000 + "\nend"
        (self.folder / "a.txt").write_bytes(text.encode())
        (self.folder / "b").write_bytes("last é".encode())
        a = self.folder / "a.txt"
        self.assertEqual(self.texts_of(a, "b"), [text, "last é"])
        self.assertEqual(self.texts_of(a, "b", "--documents=line"), [line[:-1] if line.endswith("\r") else line for line in text.split("\n")
                                                                     if line.strip("\r")] + ["last é"])
        self.assertEqual(self.texts_of(a, "--documents=blank-line"), ["one\ntwo", " three ", "four\rfour", "long " * 50000 + "\nend"])
        self.assertEqual(self.texts_of(a, r"--documents=separator:\n\n\n"), [part for part in text.split("\n\n\n")])
        fortunes = b"\n%\n".join(text.encode() for text in self.texts)
        (self.folder / "f").write_bytes(fortunes)
        self.assertEqual(self.texts_of("f", r"--documents=separator:\n%\n"), [text for text in self.texts if text.strip("\r\n")])

    def test_separators_across_blocks(self):
        draw = random.Random(1)
        for _ in range(300):
            separator = bytes(draw.choices(b"ab", k=draw.randint(1, 4)))
            text = bytes(draw.choices(b"abc", k=draw.randint(0, 200)))
            readers.TEXT_BLOCK = draw.randint(1, 9)
            self.addCleanup(setattr, readers, "TEXT_BLOCK", 1 << 20)
            pieces = list(readers.separated(io.BytesIO(text), separator))
            self.assertEqual([piece for _, piece in pieces], [piece for piece in text.split(separator) if piece])
            self.assertTrue(all(text[at:at + len(piece)] == piece for at, piece in pieces))

    def test_the_same_records_in_every_file(self):
        records = [{"text": text, "n": i} for i, text in enumerate(self.texts[:2000])]
        self.lines("a.jsonl", records)
        (self.folder / "a.jsonl.gz").write_bytes(gzip.compress((self.folder / "a.jsonl").read_bytes()))
        (self.folder / "with_mark").write_bytes(b"\xef\xbb\xbf" + (self.folder / "a.jsonl").read_bytes().replace(b"\n", b"\r\n\r\n"))
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), self.folder / "a.parquet", row_group_size=300)
        expected = self.texts_of("a.jsonl")
        self.assertEqual(expected, [record["text"] for record in records])
        whole = (self.folder / "data.ftd").read_bytes()
        for words in (["a.jsonl.gz"], ["a.parquet"], ["with_mark", "--from=jsonl"]):
            self.texts_of(*words)
            self.assertEqual((self.folder / "data.ftd").read_bytes(), whole, words)
        self.assertEqual(self.texts_of("a.parquet", "a.jsonl"), expected + expected)

    def test_conversations_of_parquet(self):
        folder, _ = self.tokenizer("gpt2")
        records = [{"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": text}]} for i, text in enumerate(self.texts[:500])]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), self.folder / "a.parquet")
        self.program(f"--tokenizer={folder}", "a.parquet", "-o", "p.ftd")
        self.program(f"--tokenizer={folder}", self.lines("a.jsonl", records), "-o", "j.ftd")
        self.assertEqual((self.folder / "p.ftd").read_bytes(), (self.folder / "j.ftd").read_bytes())

    def test_labels(self):
        folder, theirs = self.tokenizer("wordpiece")
        texts, names = self.texts[:300], ["negative", "neutral", "positive"]
        numbers = [i * 7 % 3 for i in range(300)]
        by_number = self.lines("n.jsonl", [{"text": text, "label": n} for text, n in zip(texts, numbers)])
        by_name = self.lines("s.jsonl", [{"sentence": text, "mood": names[n]} for text, n in zip(texts, numbers)])
        self.program(f"--tokenizer={folder}", by_number, "-o", "n.ftd", "--max-length=32")
        data = ft.open_data(self.folder / "n.ftd").verify()
        self.assertEqual((data.metadata["kind"], data.inputs["labels"].dtype, data.inputs["labels"].tolist()), ("sequences", np.dtype("<i4"), numbers))
        self.assertEqual(documents_of(data), theirs(texts, truncation=True, max_length=32).input_ids)
        self.program(f"--tokenizer={folder}", by_name, "-o", "s.ftd", "--max-length=32", "--text-key=sentence", "--label-key=mood",
                     f"--labels={','.join(names)}")
        self.assertEqual((self.folder / "s.ftd").read_bytes(), (self.folder / "n.ftd").read_bytes())
        config = self.folder / "config.json"
        (self.folder / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
        (self.folder / "tokenizer_config.json").write_bytes((folder / "tokenizer_config.json").read_bytes())
        config.write_text(json.dumps({"label2id": {name: i for i, name in enumerate(names)}}))
        self.program(f"--tokenizer={self.folder}", by_name, "-o", "s.ftd", "--max-length=32", "--text-key=sentence", "--label-key=mood")
        self.assertEqual((self.folder / "s.ftd").read_bytes(), (self.folder / "n.ftd").read_bytes())
        config.write_text(json.dumps({"label2id": {"a": 0, "b": 1}}))
        self.refused(r"n\.jsonl:3: label 2 is out of range; classes are 0 to 1", f"--tokenizer={self.folder}", by_number, "-o", "x.ftd")
        self.program(f"--tokenizer={folder}", by_number, "-o", "t.ftd", "--label-key=")
        self.assertEqual(ft.open_data(self.folder / "t.ftd").metadata["kind"], "text")

    def test_from_python_without_pytorch(self):
        folder, theirs = self.tokenizer("llama3")
        self.lines("a.jsonl", [{"text": "Hello"}])
        script = ("import sys, ft\n"
                  "done = ft.tokenize('a.jsonl', 'a.ftd', tokenizer=sys.argv[1], append_eos=False, processes=2)\n"
                  "data = ft.open_data('a.ftd').verify()\n"
                  "assert done['tokens'] == len(data.tokens) and done['documents'] == 1, done\n"
                  "assert not {'torch', 'transformers', 'pyarrow'} & set(sys.modules)\n"
                  "try:\n    ft.tokenize(['none.jsonl'], 'b.ftd', tokenizer=sys.argv[1])\n    raise SystemExit('no error')\n"
                  "except ft.Error as error:\n    assert 'none.jsonl' in str(error) and error.status == 74, error\n"
                  "print(data.tokens.tolist())")
        done = subprocess.run([sys.executable, "-c", script, folder], cwd=self.folder, capture_output=True, text=True, env=environment())
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(theirs("Hello").input_ids)), done.stderr)


if __name__ == "__main__":
    unittest.main()
