"""The program ft-tokenize: what it refuses and how, its bar, its end by a signal, how it is installed."""
import contextlib
import gzip
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import unittest

import pyarrow
import pyarrow.parquet

from support import ROOT, installed_package, wait_for
from tokenizing import PACKAGE, TokenizeTest, environment

sys.path.insert(0, str(PACKAGE))
import ft


class Refusals(TokenizeTest):
    def test_files_that_are_refused(self):
        folder, _ = self.tokenizer("gpt2")
        good = b'{"text": "a"}\n'
        cases = [
            ("a.txt", b"", "a.txt: no document with text in it"), ("a.jsonl", b"\n \n", "a.jsonl: no document with text in it"),
            ("a.jsonl", b'{"text": ""}\n', "a.jsonl: no document with text"),
            ("a.txt", b"abc\xff", r"a.txt: byte 3 is no UTF-8 \(ff\)"), ("a.txt", b"x" * 5000000 + b"\xc3", "a.txt: byte 5000000 is no UTF-8"),
            ("a.jsonl", good + b'{"text": "\xe9"}\n', "a.jsonl:2: byte 10 of the line is no UTF-8"),
            ("a.jsonl", good * 40000 + b'{"text": "b"\n', "a.jsonl:40001: no JSON: Expecting ',' delimiter at character 14"),
            ("a.jsonl", b"[" * 100000, "a.jsonl:1: no JSON: .*recursion"),
            ("a.jsonl", b'{"text": "a"} {"text": "b"}\n', "a.jsonl:1: no JSON: Extra data"),
            ("a.jsonl", b'{"text": "a\nb"}\n', "a.jsonl:1: no JSON: (Unterminated string|Invalid control character)"),
            ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl:1: character 1 of the text is half a surrogate pair"),
            ("a.jsonl", b"\n" + good + b'{"txt": "a"}\n', "a.jsonl:3: the record has 'txt'; wanted is 'text'"),
            ("a.jsonl", b"{}", "a.jsonl:1: the record has nothing"),
            ("a.jsonl", b'{"text": 3}\n', "a.jsonl:1: 'text' is 3; a text is wanted"), ("a.jsonl", b'["text"]\n', "a.jsonl:1: .*a record is an object"),
            ("a.jsonl", b'{"text": null}\n', "a.jsonl:1: the record has 'text'; wanted is"),
            ("a.jsonl", good + b'{"prompt": "a", "completion": "b"}\n', "a.jsonl:2: a completion, after a text at a.jsonl:1"),
            ("a.jsonl", good * 60000 + b'{"prompt": "a", "completion": "b"}\n', r"a.jsonl:60001: a completion, after a text at a.jsonl:\d+"),
            ("a.jsonl", good + b'{"text": "a", "label": 1}\n', "a.jsonl:1: no label 'label', and other records have one"),
            ("a.jsonl", b'{"text": "a", "label": -1}\n', "a.jsonl:1: label -1 is out of range"),
            ("a.jsonl", b'{"text": "a", "label": 1.5}\n', "a.jsonl:1: label 1.5; a whole number"),
            ("a.jsonl", b'{"text": "a", "label": true}\n', "a.jsonl:1: label True; a whole number"),
            ("a.jsonl", b'{"text": "a", "label": 2147483648}\n', "a.jsonl:1: label 2147483648 is out of range"),
            ("a.jsonl", b'{"text": "a", "label": "x"}\n', "a.jsonl:1: label 'x' is no class; say what they are: --labels"),
            ("a.jsonl", b'{"text": "", "label": 1}\n', "a.jsonl:1: the text is empty, and has a label"),
            ("a.json", b'[{"text": "a"}]', "a.json: a JSON document, a list"), ("a.jsonl.gz", gzip.compress(good * 999)[:-20], "a.jsonl.gz: damaged gzip"),
            ("a.jsonl.gz", good, "a.jsonl.gz: damaged gzip: Not a gzipped file"),
            ("a.parquet", b"PAR1" + bytes(90), "a.parquet: damaged Parquet"), ("a.zip", b"PK\x03\x04", "a.zip: a ZIP archive"),
            ("a", b"\xff\xfea\x00", "UTF-16"),
        ]
        for name, content, pattern in cases:
            for processes in (1, 2):
                with self.subTest(pattern, processes=processes):
                    (self.folder / name).write_bytes(content)
                    self.refused(pattern, f"--tokenizer={folder}", name, "-o", "x.ftd", f"--processes={processes}")
        for row, pattern in (({"text": None}, "p.parquet: row 1: the record has 'text'"), ({"text": 4}, "p.parquet: row 1: 'text' is 4"),
                             ({"words": "a"}, "p.parquet: has the columns words; none of them")):
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), self.folder / "p.parquet")
            self.refused(pattern, f"--tokenizer={folder}", "p.parquet", "-o", "x.ftd")

    def test_what_was_there_stays(self):
        folder, _ = self.tokenizer("gpt2")
        (self.folder / "x.ftd").write_text("old")
        (self.folder / "a.jsonl").write_text('{"text": "a"}\n' * 90000 + "{")
        self.refused("a.jsonl:90001", f"--tokenizer={folder}", "a.jsonl", "-o", "x.ftd")
        self.assertEqual((self.folder / "x.ftd").read_text(), "old")

    def test_command_lines_that_are_refused(self):
        folder, _ = self.tokenizer("gpt2")
        (self.folder / "a.txt").write_text("a")
        named = [f"--tokenizer={folder}", "a.txt"]
        cases = [([], "nothing to write", 2), (["--bogus"], "unrecognized arguments: --bogus", 2), (named, "-o data.ftd says where", 2),
                 ([*named, "-o"], "expected one argument", 2), (["a.txt", "-o", "x.ftd"], "--tokenizer=DIR is missing", 2),
                 ([*named, "-o", "x.ftd", "--processes=0"], "a whole number from 1", 2), ([*named, "-o", "x.ftd", "--max-length=1x"], "a whole number from 1",
                                                                                          2),
                 ([*named, "-o", "x.ftd", "--append-eos=yes"], "invalid choice", 2),
                 ([*named, "-o", "x.ftd", "--documents=page"], "wanted is file, line", 2), ([*named, "-o", "x.ftd", "--documents=separator:"],
                                                                                            "wanted is file, line", 2),
                 ([*named, "-o", "x.ftd", "--labels=a,a"], "each once", 2),
                 ([*named, "-o", "x.ftd", "--date=today"], "YYYY-MM-DD", 2), ([*named, "-o", "x.ftd", "--chat"], "--chat goes with --prompt", 2),
                 ([*named, "-o", "x.ftd", "--prompt=a"], "files were named, too", 2), ([f"--tokenizer={folder}", "-o", "x.ftd"], "no file to read", 2),
                 ([*named, "-o", "x.ftd", "--loss-on=assistant"], "this is text, all of which counts", 65),
                 ([*named, "-o", "x.ftd", "--labels=a,b"], "labels are in records", 65), ([*named, "-o", "none/x.ftd"], "its folder does not exist", 74),
                 ([f"--tokenizer={folder}", "b.txt", "-o", "x.ftd"], "b.txt: No such file", 74),
                 ([f"--tokenizer={folder}", ".", "-o", "x.ftd"], "a folder; name its files", 74),
                 (["--tokenizer=none", "a.txt", "-o", "x.ftd"], "no such folder or file", 74),
                 ([*named, "-o", "x.ftd", "--chat-template=none.jinja"], "none.jinja: No such file", 74)]
        for words, pattern, status in cases:
            with self.subTest(pattern):
                self.refused(pattern, *words, status=status)
        self.program(*named, "-o", "a.ftd")
        self.lines("a.jsonl", [{"text": "a"}])
        for words, pattern in (([*named, "--documents=ends-with:0", "-o", "x.ftd"], "is for files of tokens, and a.txt is text"),
                               ([f"--tokenizer={folder}", "a.jsonl", "--documents=line", "-o", "x.ftd"], "is for files of text, and there is none"),
                               (["a.ftd", "--documents=line", "-o", "x.ftd"], "is for files of text"),
                               (["a.ftd", "--max-length=3", "-o", "x.ftd"], "--max-length is for text and records"),
                               (["a.ftd", "--prepend-bos=on", "-o", "x.ftd"], "--prepend-bos is for"),
                               (["a.ftd", "--loss-on=assistant", "-o", "x.ftd"], "--loss-on=assistant is for text"),
                               (["--verify", "a.ftd", "-o", "x.ftd"], "--verify writes nothing"), (["--verify"], "names no file")):
            self.refused(pattern, *words, status=2)
        self.refused("a.txt.*--chat-template, and this is a text", *named, "--chat-template", "-o", "x.ftd")
        self.refused("of another tokenizer", "--verify", "a.ftd", f"--tokenizer={self.tokenizer('llama3')[0]}")
        self.program("--verify", "a.ftd", f"--tokenizer={folder}")
        wordpiece = self.tokenizer("wordpiece")[0]
        self.refused("--max-length=2 has no room", f"--tokenizer={wordpiece}", "a.txt", "-o", "x.ftd", "--max-length=2", status=2)

    def test_tokenizers_that_are_refused(self):
        folder, _ = self.tokenizer("gpt2")
        (self.folder / "a.txt").write_text("a")
        content = json.loads((folder / "tokenizer.json").read_text())
        copy = self.folder / "t"
        vocabulary = content["model"]["vocab"]
        first, second = list(vocabulary)[5:7]
        cases = [({}, {"tokenizer.model": "x"}, r"has no tokenizer.json, only tokenizer.model; make one with transformers \(and sentencepiece\)"),
                 ({}, {}, "has no tokenizer.json"), ({}, {"tokenizer.json": "{"}, "tokenizer.json: no JSON"),
                 ({}, {"tokenizer.json": "{}"}, "not a tokenizer.json"), ({**content, "model": {**content["model"], "type": "New"}}, {}, "cannot read it"),
                 ({**content, "model": {**content["model"], "vocab": {**vocabulary, first: vocabulary[second]}}}, {}, "gives id"),
                 ({**content, "model": {**content["model"], "vocab": {**vocabulary, first: -1}}}, {}, "ids are whole numbers"),
                 (content, {"tokenizer_config.json": '{"eos_token": "<none>"}'}, "names the token '<none>', which tokenizer.json has not"),
                 (content, {"tokenizer_config.json": '{"added_tokens_decoder": {"5": {"content": "<none>"}}}'}, "names the token '<none>'"),
                 (content, {"tokenizer_config.json": "[]"}, "holds no JSON object"), (content, {"config.json": "{"}, "config.json: no JSON")]
        for tokenizer, files, pattern in cases:
            with self.subTest(pattern):
                copy.mkdir(exist_ok=True)
                for name, text in ({"tokenizer.json": json.dumps(tokenizer)} if tokenizer else {}).items() | files.items():
                    (copy / name).write_text(text)
                self.refused(pattern, "--tokenizer=t", "a.txt", "-o", "x.ftd")
                shutil.rmtree(copy)

    def test_special_tokens_of_the_config(self):
        """A token of the vocabulary that tokenizer_config.json alone makes special is found in texts, as transformers does."""
        from transformers import PreTrainedTokenizerFast
        folder, _ = self.tokenizer("gpt2")
        content = json.loads((folder / "tokenizer.json").read_text())
        content["added_tokens"] = [each for each in content["added_tokens"] if each["content"] != "<|im_end|>"]
        content["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
        content["padding"] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
                              "pad_token": "<|endoftext|>"}
        (self.folder / "tokenizer.json").write_text(json.dumps(content))
        (self.folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>", "pad_token": "<|im_end|>"}))
        theirs = PreTrainedTokenizerFast.from_pretrained(self.folder)
        (self.folder / "a.txt").write_text("one<|im_end|>two")
        self.program("--tokenizer=.", "a.txt", "-o", "a.ftd")
        data = ft.open_data(self.folder / "a.ftd").verify()
        self.assertEqual(data.tokens.tolist(), [*theirs("one<|im_end|>two").input_ids, 0])
        self.assertIn(theirs.pad_token_id, data.tokens)
        self.program("--tokenizer=.", "--prompt=one<|im_end|>two", "-o", "p.ftd")
        self.assertEqual(ft.open_data(self.folder / "p.ftd").tokens.tolist(), theirs("one<|im_end|>two").input_ids)
        self.assertEqual((data.metadata["pad_token"], data.vocabulary[2][theirs.pad_token_id]), (str(theirs.pad_token_id), 1))


class Program(TokenizeTest):
    def test_a_bar_on_a_terminal_and_none_elsewhere(self):
        folder, _ = self.tokenizer("gpt2")
        self.lines("a.jsonl", [{"text": text} for text in self.texts])
        command = [sys.executable, "-m", "ft.tokenize", f"--tokenizer={folder}", "a.jsonl", "-o", "a.ftd"]
        terminal, other = pty.openpty()
        done = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=other, env=environment())
        os.close(other)
        said = b""
        try:
            while block := os.read(terminal, 1 << 16):
                said += block
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        done.stdout.close()
        self.assertEqual(done.wait(), 0)
        self.assertRegex(said.decode(), r"\[#*\.*\] +\d+%  [\d,]+ documents  [\d.]+[kM]? tokens  [\d.]+ MB/s")
        self.assertEqual(self.program(*command[3:])[1], "")

    def test_what_a_run_says(self):
        folder, _ = self.tokenizer("gpt2")
        source = self.lines("a.jsonl", [{"messages": [{"role": "user", "content": "a\x1b[1m"}, {"role": "assistant", "content": "b\nc"}]}])
        said, _ = self.program(f"--tokenizer={folder}", source, "-o", "a.ftd", "--show=3")
        line, *shown = said.splitlines()
        self.assertRegex(line, r"^a.ftd: conversations, 1 documents, \d+ tokens \(U16\), 4 count, vocabulary \d+ [0-9a-f]{16}$")
        self.assertEqual(shown[1:], ["    <|im_start|>user", r"    a\x1b[1m<|im_end|>", "    <|im_start|>assistant", "  + b", "  + c<|im_end|>"])
        said, notes = self.program(f"--tokenizer={self.tokenizer('wordpiece')[0]}", self.lines("b.jsonl", [{"text": "a"}, {"text": ""}]), "-o", "b.ftd")
        self.assertRegex(said, "1 empty ones left out")
        self.assertRegex(notes, "no eos_token is known of")
        self.program("a.ftd", "-o", "a.u16", "--loss-on=all")
        self.program("a.u16", "-o", "ids.ftd")
        ids = ft.open_data(self.folder / "ids.ftd").tokens.tolist()
        self.assertEqual(self.program("--show=1", "ids.ftd")[0].splitlines()[1], f"  + {' '.join(map(str, ids))} ")
        self.assertEqual(self.program("--show=1", "b.ftd")[0].splitlines()[0], "document 0: 3 tokens, 3 count")

    def test_a_signal_leaves_nothing(self):
        folder, _ = self.tokenizer("gpt2")
        for processes in (1, 2):
            pipe = self.folder / "a.jsonl"
            os.mkfifo(pipe)
            run = subprocess.Popen([sys.executable, "-m", "ft.tokenize", f"--tokenizer={folder}", "a.jsonl", "-o", "a.ftd", f"--processes={processes}"],
                                   cwd=self.folder, env=environment(), stderr=subprocess.PIPE)
            with open(pipe, "wb") as writer:
                for text in self.texts[:9000]:
                    writer.write(json.dumps({"text": text}).encode() + b"\n")
                writer.flush()
                run.send_signal(signal.SIGTERM)
                self.assertEqual(run.wait(60), 143)
            self.assertEqual(run.stderr.read(), b"")
            run.stderr.close()
            pipe.unlink()
            self.assertEqual(list(self.folder.iterdir()), [])
            wait_for(lambda: not self.working_here(), 20, "its processes have ended")

    def working_here(self):
        """Processes in the test's folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "cwd") == str(self.folder):
                    found.append(entry.name)
        return found

    def test_pipes_and_full_disks(self):
        folder, _ = self.tokenizer("gpt2")
        self.lines("a.jsonl", [{"text": "abc"}])
        shell = f"{sys.executable} -m ft.tokenize --tokenizer={folder} --from=jsonl <(cat a.jsonl) -o p.ftd"
        done = subprocess.run(["bash", "-c", shell], cwd=self.folder, env=environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.program(f"--tokenizer={folder}", "a.jsonl", "-o", "a.ftd")
        self.assertEqual((self.folder / "p.ftd").read_bytes(), (self.folder / "a.ftd").read_bytes())
        before = sorted(self.folder.iterdir())
        shell = f"ulimit -f 1; exec {sys.executable} -m ft.tokenize --tokenizer={folder} a.jsonl -o x.ftd"
        done = subprocess.run(["bash", "-c", shell], cwd=self.folder, env=environment(), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (74, 1), done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_installed_by_pip(self):
        site = self.folder / "site"
        installed_package(self.folder, site)
        done = subprocess.run([site / "bin" / "ft-tokenize", "--help"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(site)})
        self.assertEqual(done.returncode, 0, done.stderr)
        options = set(re.findall(r"(?<![\w-])--[a-z-]+", done.stdout))
        page = set(re.findall(r"(?<![\w-])--[a-z-]+", (ROOT / "docs" / "tokenize.md").read_text()))
        self.assertEqual(options - page - {"--help", "--output"}, set(), "options that docs/tokenize.md does not name")

    def test_without_packages(self):
        """A Python without tokenizers says what to install."""
        done = subprocess.run([sys.executable, "-S", "-m", "ft.tokenize", "a.txt", "-o", "a.ftd", "--tokenizer=t"], cwd=self.folder, capture_output=True,
                              text=True, env=environment())
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^ft-tokenize: needs the Python packages numpy, tokenizers, xxhash, jinja2: pip install .*\[tokenize\]")


if __name__ == "__main__":
    unittest.main()
