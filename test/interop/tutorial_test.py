"""docs/tutorial.md as it stands: every block is run in a fresh folder, and prints what the page says it prints, in other figures maybe.

A ```sh block is run by bash. A ```python block is written to the file that its first line names. A ```text block is what the sh block before it prints: its lines follow
each other in the output, but for lines `...`, which stand for any. `<!-- test: skip: WHY -->` before a block leaves it out, which only installing and downloading may."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ET

import torch
import transformers as tf

import support

PAGE, PLOT = support.ROOT / "docs" / "tutorial.md", support.ROOT / "docs" / "tutorial" / "plot_loss.py"
ANSWER = "Tomorrow is Sunday, and you are in Peru."
SKIPPED = {"builds and installs", "downloads"}
tf.logging.set_verbosity_error()
tf.logging.disable_progress_bar()


@dataclasses.dataclass
class Block:
    line: int
    kind: str
    skip: str
    text: str = ""


def blocks(page):
    """The fenced blocks of a page, in order."""
    found, fence, skip = [], None, ""
    for at, line in enumerate(page.splitlines(), 1):
        if fence is not None:
            if line == "```":
                fence = None
            else:
                fence.text += line + "\n"
        elif line.startswith("```"):
            fence = Block(at, line[3:], skip)
            found.append(fence)
            skip = ""
        else:
            mark = re.fullmatch(r"<!-- test: skip: (.+) -->", line)
            if skip or (line.startswith("<!-- test") and not mark):
                raise AssertionError(f"{PAGE}:{at}: no block follows, or a mark that is none")
            skip = mark[1] if mark else ""
    if fence is not None:
        raise AssertionError(f"{PAGE}:{fence.line}: a block without an end")
    return found


def shape(line):
    """A line without what differs from machine to machine and from model to model: figures, units of time, hashes, instruction sets, what nothing hid."""
    line = re.sub(r"\s+exposed [\d.]+ \w+$", "", line.rsplit("\r", 1)[-1])
    line = re.sub(r"\b[0-9a-f]{16}\b", "#", re.sub(r"x86-64-\S+|generic;", "CPU;", re.sub(r"\bthreads\b", "thread", line)))
    line = re.sub(r"\d[\d,]*(\.\d+)?(e[+-]?\d+)?(?![\d.])", "#", line)
    return re.sub(r"\s+", " ", re.sub(r"# (us|ms|s)\b", "# s", line)).strip()


def matches(shown, printed, at=None, free=False):
    """Whether the shown lines are printed, from line `at` on, or wherever where it is None. What the model answers while it is trained (free) may be anything."""
    if not shown:
        return True
    if shown[0] == "...":
        return matches(shown[1:], printed[at or 0:])
    if at is None:
        return any(matches(shown, printed, i) for i in range(len(printed)))
    same = at < len(printed) and (free or shape(shown[0]) == shape(printed[at]))
    return same and matches(shown[1:], printed, at + 1, shape(shown[0]) == "[rank #] assistant")


def number_in(pattern, text):
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise AssertionError(f"{len(found)} times {pattern} in\n{text}")
    return float(found[0].replace(",", ""))


def loss_of_transformers(folder, records):
    """The mean over what the assistant says, and the token that ends it, a conversation at a time."""
    tokenizer, model = tf.AutoTokenizer.from_pretrained(folder), tf.AutoModelForCausalLM.from_pretrained(folder).eval()
    total, counted = 0.0, 0
    for record in records:
        asked = tokenizer.apply_chat_template(record["messages"][:1], add_generation_prompt=True, tokenize=False)
        prompt = tokenizer(asked, add_special_tokens=False).input_ids
        answer = tokenizer(record["messages"][1]["content"] + "<|im_end|>", add_special_tokens=False).input_ids
        ids = torch.tensor([prompt + answer])
        with torch.no_grad():
            logits = model(ids).logits[0, len(prompt) - 1:-1]
        total += torch.nn.functional.cross_entropy(logits, ids[0, len(prompt):], reduction="sum").item()
        counted += len(answer)
    return total / counted, counted


class TutorialTest(support.InteropTest):
    def environment(self):
        """As the page's first step leaves it: the programs on PATH, and the Python that runs this test."""
        programs = self.folder / "programs"
        programs.mkdir()
        for name, module in ("python3", ""), ("ft-tokenize", "-m ft.tokenize"):
            (programs / name).write_text(f'#!/bin/sh\nPYTHONPATH="{support.ROOT / "tools" / "python"}" exec "{sys.executable}" {module} "$@"\n')
            (programs / name).chmod(0o755)
        return support.environment() | {"FT_SOURCE": str(support.ROOT), "PATH": os.pathsep.join([str(programs), str(support.BIN), os.environ["PATH"]])}

    def run_page(self, place):
        """Runs the blocks; returns what each sh block printed."""
        printed, environment, skipped = [], self.environment(), set()
        for block in blocks(PAGE.read_text(encoding="utf-8")):
            where = f"{PAGE}:{block.line}"
            if block.skip:
                skipped.add(block.skip)
            elif block.kind == "sh":
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=place, env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=300)
                printed.append(done.stdout.decode(errors="replace"))
                self.assertEqual(done.returncode, 0, f"{where}\n{printed[-1]}")
            elif block.kind == "python":
                name = re.fullmatch(r"# (\w+\.py)", block.text.split("\n", 1)[0])
                self.assertTrue(name, f"{where}: the first line names no file")
                (place / name[1]).write_text(block.text)
            elif block.kind == "text":
                self.assertTrue(matches(block.text.splitlines(), printed[-1].split("\n")), f"{where}: this is not what is printed:\n{printed[-1]}")
            else:
                self.fail(f"{where}: a block of {block.kind!r} is not run; sh, python and text are")
        self.assertEqual(skipped, SKIPPED)
        return printed

    def test_every_step(self):
        place = self.folder / "first"
        place.mkdir()
        printed = "\n".join(self.run_page(place))
        self.check_training(place, printed)
        self.check_saved(place, printed)
        self.check_picture(place / "loss.svg")

    def check_training(self, place, printed):
        lines = support.metrics_of(place / "metrics.jsonl")
        losses, evaluations = ([line[key] for line in lines if key in line] for key in ("loss", "eval_loss"))
        self.assertEqual(len(losses), 120)
        self.assertLess(sum(losses[-12:]), sum(losses[:12]) / 10)
        self.assertEqual(len(evaluations), 6)
        self.assertLess(evaluations[-1], evaluations[0] / 10)
        # What ftc explain said of the plan is what was taken.
        self.assertEqual(lines[0]["arena_bytes"], number_in(r"^  arena +([\d,]+) ", printed))
        self.assertEqual([line["sample_text"].strip() for line in lines if "sample_text" in line][-1], ANSWER)

    def check_saved(self, place, printed):
        _, loading = tf.AutoModelForCausalLM.from_pretrained(place / "tuned", output_loading_info=True)
        for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            self.assertFalse(loading[what], what)
        records = [json.loads(line) for line in (place / "held-out.jsonl").read_text().splitlines()]
        before, after, _ = (float(loss) for loss in re.findall(r"^loss ([\d.]+)  perplexity", printed, re.MULTILINE))
        for folder, ours in ("model", before), ("tuned", after):
            theirs, counted = loss_of_transformers(place / folder, records)
            self.assertLess(abs(ours - theirs), 1e-5 * theirs + 1e-6, folder)  # 1e-6: as many digits are printed
            self.assertIn(f"{len(records)} documents, ", printed)
            self.assertIn(f"over {counted} tokens", printed)
        # ftexec and transformers continue the prompt alike.
        self.assertEqual(len(re.findall(rf"^{ANSWER}$", printed, re.MULTILINE)), 2)

    def check_picture(self, path):
        """Its curve has all steps, and the page's picture is one of such a run."""
        for picture in (path, support.ROOT / "docs" / "tutorial-loss.svg"):
            curves, dots = drawn(picture)
            self.assertEqual([len(curve) for curve in curves], [120], picture)
            self.assertEqual(len(dots), 6, picture)
            self.assertGreater(curves[0][-1][1], curves[0][0][1], picture)  # y grows downwards


def drawn(path):
    """(curves, dots) of a picture, without the legend's."""
    svg = "{http://www.w3.org/2000/svg}"
    root = ET.parse(path).getroot()
    curves = [[tuple(map(float, pair.split())) for pair in re.split(r"\s*[ML]", at.get("d"))[1:]] for at in root.iter(svg + "path") if " h" not in at.get("d")]
    dots = [(float(at.get("cx")), float(at.get("cy"))) for at in root.iter(svg + "circle")]
    kinds = [text.text for text in root.iter(svg + "text") if text.text.endswith("evaluation")]
    return curves, dots[:len(dots) - len(kinds)]


class ReaderTest(unittest.TestCase):
    """The comparison with the page sees what is wrong."""

    def test_shapes(self):
        printed = ["a 1", "step 2/9  loss 1.5  12 ms  exposed 3 ms", "[rank 0] assistant", "anything", "end 0c7dd14a52e34b6e"]
        for shown in (["a 2"], ["a 2", "step 8/9  loss 2.25e-03  1.5 s"], ["a 7", "...", "end 86227d3bfaf03850"], ["[rank 0] assistant", "else", "end #"]):
            self.assertTrue(matches(shown, printed), shown)
        for shown in (["b 2"], ["a 2", "end 1"], ["a", "..."], ["end 1", "...", "a 1"], ["step 2/9  lost 1.5  12 ms"], ["a 1", "...", "a 1"]):
            self.assertFalse(matches(shown, printed), shown)

    def test_marks(self):
        self.assertEqual([(b.line, b.kind, b.skip, b.text) for b in blocks("x\n<!-- test: skip: why -->\n```sh\na\n\nb\n```\n```text\n```\n")],
                         [(3, "sh", "why", "a\n\nb\n"), (8, "text", "", "")])
        for wrong in ("```sh\na\n", "<!-- test: skip: why -->\nwords\n```sh\n```\n", "<!-- test: later -->\n```sh\n```\n"):
            with self.assertRaises(AssertionError):
                blocks(wrong)


class PlotTest(support.InteropTest):
    def plot(self, *lines, status=0, name="m.jsonl"):
        metrics, self.svg = self.folder / name, self.folder / "loss.svg"
        metrics.write_text("".join(line + "\n" for line in lines))
        done = subprocess.run([sys.executable, "-I", PLOT, metrics, "-o", self.svg], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_curve(self):
        """Later lines of a step replace earlier ones; a loss that is not finite is a gap; evaluations are dots at their steps."""
        self.plot('{"step":0,"loss":9.0}', '{"step":1,"loss":4.0}', '{"step":1,"eval_loss":3.0,"eval_tokens":7}', '{"step":2,"loss":null,"loss_nonfinite":"nan"}',
                  '{"step":3,"loss":1.0}', '{"step":0,"loss":8.0}', '{"step":3,"sample":0,"sample_text":"x"}')
        (curve,), (dot,) = drawn(self.svg)
        self.assertEqual(len(curve), 3)
        (x1, y8), (x2, y4), (x4, y1) = curve
        self.assertAlmostEqual((y4 - y8) / (y1 - y8), 4 / 7, delta=0.01)
        self.assertAlmostEqual((x4 - x2) / (x2 - x1), 2, delta=0.01)
        self.assertEqual(dot[0], x2)
        self.assertAlmostEqual((dot[1] - y8) / (y1 - y8), 5 / 7, delta=0.01)
        self.assertEqual(self.svg.read_text().count("M"), 3)  # the curve begins again behind the gap; the legend's line

    def test_one_step(self):
        for line in ('{"step":0,"loss":2.5}', '{"step":-1,"eval_loss":0}', '{"step":7000,"loss":-1}'):
            self.plot(line)
            curves, dots = drawn(self.svg)
            self.assertEqual(sum(map(len, curves)) + len(dots), 1)

    def test_refusals(self):
        for line, pattern in (("loss 1", ":1: this is no line of JSON"), ('{"loss":1}', ":1: this line has no step"), ("[1]", ":1: this line has no step"),
                              ('{"step":1,"loss":"low"}', ":1: loss is 'low', no number"), ('{"step":1,"loss":true}', ":1: loss is True, no number"),
                              ('{"step":1,"lr":1}', ": no line has a loss"), ('{"step":1,"loss":null}', ": no line has a loss")):
            said = self.plot(line, status=65)
            self.assertIn(pattern, said)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertFalse(self.svg.exists())
        for words, status in (["none.jsonl", "-o", "a.svg"], 74), (["m.jsonl"], 2), (["m.jsonl", "-o", "none/a.svg"], 74):
            self.folder.joinpath("m.jsonl").write_text('{"step":1,"loss":1}\n')
            done = subprocess.run([sys.executable, "-I", PLOT, *words], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["m.jsonl"])


if __name__ == "__main__":
    unittest.main()
