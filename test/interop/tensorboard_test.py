"""TensorBoard itself reads what ftexec writes into --log-dir: its event accumulator, its web server with either loader."""
import contextlib
import html.parser
import json
import math
import pathlib
import subprocess
import sys
import unittest
import urllib.request

import numpy as np
from tensorboard import plugin_util
from tensorboard.backend.event_processing import event_accumulator

import support

CURVES = {"loss": "train/loss", "grad_norm": "train/grad_norm", "lr": "train/lr", "tokens_per_s": "throughput/tokens_per_s",
          "samples_per_s": "throughput/samples_per_s", "step_ms": "throughput/step_ms", "exposed_ms": "communication/exposed_ms",
          "arena_bytes": "memory/arena_bytes"}
TEXTS = ("run/settings", "run/memory")
STEPS = 6


def load(folder):
    """All points: by default the accumulator keeps a sample."""
    guidance = {event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0}
    return event_accumulator.EventAccumulator(str(folder), size_guidance=guidance).Reload()


def points(accumulator, tag):
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


class Cells(html.parser.HTMLParser):
    """The rows of the tables, and the blocks of code, that a page shows."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.rows, self.blocks, self.tags = [], [], set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "code":
            self.blocks.append("")
        self.within = tag

    def handle_endtag(self, tag):
        self.within = None

    def handle_data(self, data):
        if self.within in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.within == "code":
            self.blocks[-1] += data


class TensorBoardTest(support.InteropTest):
    def setUp(self):
        super().setUp()
        self.logs, self.metrics = self.folder / "logs", self.folder / "metrics.jsonl"
        self.plan = support.compile_plan(self.folder, "gpt2", "full_shard")

    def train(self, *options, data=support.CORPUS, steps=STEPS, status=0):
        command = support.ftexec(self.plan, steps, f"--log-dir={self.logs}", f"--metrics={self.metrics}", data=data)
        given = {option.split("=")[0] for option in options}
        command = [word for word in command if str(word).split("=")[0] not in given]
        done = subprocess.run([*command, *options], env=support.environment(), timeout=300, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)

    def runs_that_go_on(self):
        """Three of them, written by a unit test of the writer."""
        folder = self.folder / "three"
        folder.mkdir()
        subprocess.run([support.BIN.parent / "test" / "ft_metrics_test", "--gtest_filter=EventFileTest.RunsThatGoOn"], check=True,
                       env=support.environment() | {"FT_EVENTS_FOLDER": str(folder)}, timeout=60, stdout=subprocess.DEVNULL)
        return folder

    @contextlib.contextmanager
    def server(self, folder, fast):
        """Yields a function that asks for the data of a plugin."""
        port = support.free_port()
        command = [pathlib.Path(sys.executable).parent / "tensorboard", f"--logdir={folder}", "--host=127.0.0.1", f"--port={port}",
                   f"--load_fast={'true' if fast else 'false'}"]
        log = self.folder / "tensorboard.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=support.environment())

        def ask(path):
            self.assertIsNone(process.poll(), log.read_text())
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/data/plugin/{path}", timeout=30) as answer:
                return json.load(answer)
            return None

        try:
            # It listens before it has read the files; the last point to come shows that it has.
            support.wait_for(lambda: (ask("scalars/tags") or {}).get("."), 60, "TensorBoard knows the run")
            yield lambda path: support.wait_for(lambda: ask(path), 30, path)
        finally:
            process.terminate()
            process.wait()

    def test_scalars_are_those_of_the_metrics(self):
        self.train(f"--eval-data={support.CORPUS}", "--eval-every=2", "--eval-steps=1")
        lines = support.metrics_of(self.metrics)
        steps = [line for line in lines if "loss" in line]
        accumulator = load(self.logs)
        self.assertEqual(len(steps), STEPS)
        for name, tag in CURVES.items():
            self.assertEqual(points(accumulator, tag), [(line["step"], float(np.float32(line[name]))) for line in steps], tag)
        self.assertEqual(points(accumulator, "train/skipped"), [(step, 0.0) for step in range(STEPS)])
        self.assertEqual(points(accumulator, "eval/loss"), [(line["step"], float(np.float32(line["eval_loss"]))) for line in lines
                                                            if "eval_loss" in line])
        self.assertEqual(set(accumulator.Tags()["scalars"]), {*CURVES.values(), "train/skipped", "eval/loss", "memory/resident_bytes"})
        self.assertEqual(set(accumulator.Tags()["tensors"]), set(TEXTS))
        self.assertEqual(set(accumulator.PluginTagToContent("text")), set(TEXTS))

    def test_numbers_that_are_not_finite(self):
        self.train("--lr=1e38", "--max-bad-steps=2", steps=50, status=65)
        losses = dict(points(load(self.logs), "train/loss"))
        lines = support.metrics_of(self.metrics)
        self.assertTrue(math.isnan(losses[lines[-1]["step"]]))
        self.assertEqual(len(losses), len(lines))

    def test_texts_show_what_was_given(self):
        data = self.folder / "a|b `c` <i>*d*_e_\\ [f](g) {h} \\` &amp; <script>x ``|`` www.x.y 1. # +.txt"
        data.write_bytes(support.CORPUS.read_bytes())
        self.train(data=data)
        accumulator = load(self.logs)
        shown = {tag: plugin_util.markdown_to_safe_html(accumulator.Tensors(tag)[0].tensor_proto.string_val[0]) for tag in TEXTS}
        settings = Cells(shown["run/settings"])
        self.assertEqual(settings.rows[0], ["setting", "value"])
        self.assertEqual({len(row) for row in settings.rows}, {2})
        self.assertLessEqual(settings.tags, {"table", "thead", "tbody", "tr", "th", "td"})
        rows = dict(settings.rows[1:])
        self.assertEqual(rows["data"].rsplit(" (text, ", 1)[0], str(data))
        self.assertIn(f"'--data={data}'", rows["command line"])
        self.assertIn(str(self.plan), rows["plan"])
        memory = Cells(shown["run/memory"])
        explained = subprocess.run([support.BIN / "ftc", "explain", self.plan, "--world-size=1"], check=True, capture_output=True, text=True)
        self.assertEqual(len(memory.blocks), 1)
        self.assertIn(memory.blocks[0], explained.stdout)
        self.assertIn("optimizer state", memory.blocks[0])

    def test_a_run_from_the_beginning_hides_the_one_before(self):
        self.train(steps=9)
        self.train("--seed=7", steps=4)
        lines = support.metrics_of(self.metrics)
        self.assertEqual(points(load(self.logs), "train/loss"), [(line["step"], float(np.float32(line["loss"]))) for line in lines])

    def test_what_is_computed_again_is_shown_once(self):
        accumulator = load(self.runs_that_go_on())
        losses = [100 + step for step in range(5)] + [205] + [300 + step for step in range(6, 12)]
        self.assertEqual(points(accumulator, "train/loss"), list(enumerate(map(float, losses))))
        self.assertEqual(points(accumulator, "eval/loss"), [(3, 103.0), (7, 307.0), (11, 311.0)])
        self.assertEqual([(event.step, event.tensor_proto.string_val[0]) for event in accumulator.Tensors("run/settings")],
                         [(0, b"run 1"), (5, b"run 2"), (6, b"run 3")])

    def test_the_server_shows_the_same(self):
        folder = self.runs_that_go_on()
        for fast in (True, False):
            with self.subTest(fast=fast), self.server(folder, fast) as ask:
                losses = [100 + step for step in range(5)] + [205] + [300 + step for step in range(6, 12)]
                support.wait_for(lambda: len(ask("scalars/scalars?run=.&tag=train/loss")) == len(losses), 30, "all points are read")
                self.assertEqual([point[1:] for point in ask("scalars/scalars?run=.&tag=train/loss")], [[s, v] for s, v in enumerate(losses)])
                self.assertEqual([point[1:] for point in ask("scalars/scalars?run=.&tag=eval/loss")], [[3, 103], [7, 307], [11, 311]])
                texts = ask("text/text?run=.&tag=run/settings")
                self.assertEqual([(text["step"], text["text"]) for text in texts],
                                 [(0, "<p>run 1</p>"), (5, "<p>run 2</p>"), (6, "<p>run 3</p>")])


if __name__ == "__main__":
    unittest.main()
