#!/usr/bin/env python3
"""A picture of the loss of runs, as SVG, from the files of `ftexec --metrics`. Needs nothing but Python.

Usage: plot_loss.py METRICS.jsonl [METRICS.jsonl ...] -o LOSS.svg [--title=TEXT]

The loss of each step is a line, that of each evaluation a dot. A step whose loss is not finite is a gap.
Exit status: 0 done, 2 usage, 65 bad input, 74 a file that cannot be read or written.
"""
import argparse
import json
import math
import os
import sys
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 56, 20, 44, 46
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"]  # M. Okabe, K. Ito: told apart by the colour-blind
STYLE = """text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #4a5560 } .title { font-size: 14px; font-weight: 600; fill: #1b1f24 }
.grid { stroke: #dfe3e8 } .loss { fill: none; stroke-width: 1.6; stroke-linejoin: round } .eval { stroke: #fff; stroke-width: 1.2 }"""


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def number(record, key, where):
    value = record.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise Refused(65, f"{where}: {key} is {value!r}, no number")
    return value


def read(path):
    """(step -> loss or None, step -> loss of an evaluation); steps are counted from 1 as the progress does. A later line of a step replaces an earlier one."""
    losses, evaluations = {}, {}
    with open(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            where = f"{path}:{at}"
            try:
                record = json.loads(line)
            except ValueError:
                raise Refused(65, f"{where}: this is no line of JSON; --metrics of ftexec writes such files") from None
            if not isinstance(record, dict) or not isinstance(record.get("step"), int):
                raise Refused(65, f"{where}: this line has no step; --metrics of ftexec writes such files")
            for key, values in ("loss", losses), ("eval_loss", evaluations):
                if key in record:
                    values[record["step"] + 1] = number(record, key, where)
    evaluations = {step: loss for step, loss in evaluations.items() if loss is not None}
    if all(loss is None for loss in losses.values()) and not evaluations:
        raise Refused(65, f"{path}: no line has a loss")
    return dict(sorted(losses.items())), evaluations


def ticks(low, high, count):
    """Round numbers, 1, 2 or 5 times a power of ten apart, that include low and high; how many decimals they have."""
    raw = max((high - low) / count, 1e-12)
    power = math.floor(math.log10(raw))
    step = next(f * 10.0**power for f in (1, 2, 5, 10) if f * 10.0**power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(last, first + 1) + 1)], max(0, -math.floor(math.log10(step) + 1e-9))


class Picture:
    def __init__(self, runs, title):
        steps = [step for _, losses, evaluations in runs for step in (*losses, *evaluations)]
        values = [loss for _, losses, evaluations in runs for loss in (*losses.values(), *evaluations.values()) if loss is not None]
        self.runs, self.title = runs, title
        # From 0 where that is near; of a loss from 3.2 to 3.1, or of steps from 5000 to 5100, the rest would be nothing.
        low = min(values) if 2 * min(values) > max(values) or min(values) < 0 else 0
        self.y_ticks, self.decimals = ticks(low, max(values), 6)
        self.first = min(steps) if 2 * min(steps) > max(steps) else 0
        self.last = max(max(steps), self.first + 1)
        self.lines = []

    def x(self, step):
        return LEFT + (step - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, loss):
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return TOP + (high - loss) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, words, extra=""):
        self.lines.append(f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{escape(words)}</text>')

    def axes(self):
        for value in self.y_ticks:
            y = self.y(value)
            self.lines.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            self.text(LEFT - 8, y + 4, f"{value:.{self.decimals}f}", ' text-anchor="end"')
        for value in ticks(self.first, self.last, 8)[0]:
            if self.first <= value <= self.last and value == int(value):
                self.text(self.x(value), HEIGHT - BOTTOM + 18, str(int(value)), ' text-anchor="middle"')
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "step", ' text-anchor="middle"')
        self.text(LEFT, 22, self.title, ' class="title"')

    def curve(self, colour, losses, evaluations):
        parts, pen = [], "M"
        for step, loss in losses.items():
            if loss is None:
                pen = "M"
                continue
            parts.append(f"{pen}{self.x(step):.1f} {self.y(loss):.1f}")
            pen = "L"
        if parts:
            self.lines.append(f'<path class="loss" stroke="{colour}" d="{" ".join(parts)}"/>')
        for step, loss in evaluations.items():
            self.lines.append(f'<circle class="eval" fill="{colour}" cx="{self.x(step):.1f}" cy="{self.y(loss):.1f}" r="4.5"/>')

    def legend(self):
        """What lines and dots are; with several runs their names."""
        rows = []
        for index, (name, losses, evaluations) in enumerate(self.runs):
            prefix = f"{name}: " if len(self.runs) > 1 else ""
            rows += [(index, "line", prefix + "loss")] * bool(losses) + [(index, "dot", prefix + "evaluation")] * bool(evaluations)
        x = WIDTH - RIGHT - 14 - 6.6 * max(len(words) for _, _, words in rows)
        for row, (index, kind, words) in enumerate(rows):
            y, colour = TOP + 14 + 18 * row, COLOURS[index % len(COLOURS)]
            if kind == "line":
                self.lines.append(f'<path class="loss" stroke="{colour}" d="M{x - 28:.1f} {y:.1f} h18"/>')
            else:
                self.lines.append(f'<circle class="eval" fill="{colour}" cx="{x - 19:.1f}" cy="{y:.1f}" r="4.5"/>')
            self.text(x, y + 4, words)

    def svg(self):
        self.axes()
        for index, (_, losses, evaluations) in enumerate(self.runs):
            self.curve(COLOURS[index % len(COLOURS)], losses, evaluations)
        self.legend()
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(self.title)}">'
        return "\n".join([head, f"<style>{STYLE}</style>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fdfdfd"/>', *self.lines, "</svg>", ""])


def write(path, text):
    """Beside its place and renamed: there whole or not at all."""
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError:
        if os.path.exists(beside):
            os.remove(beside)
        raise


def main():
    parser = argparse.ArgumentParser(description="A picture of the loss of runs, as SVG, from the files of ftexec --metrics.")
    parser.add_argument("metrics", nargs="+", metavar="METRICS.jsonl")
    parser.add_argument("-o", "--output", required=True, metavar="LOSS.svg")
    parser.add_argument("--title", default="Loss of each step, and on held-out data")
    given = parser.parse_args()
    try:
        runs = [(os.path.splitext(os.path.basename(path))[0], *read(path)) for path in given.metrics]
        write(given.output, Picture(runs, given.title).svg())
    except Refused as refused:
        print(f"plot_loss.py: {refused}", file=sys.stderr)
        return refused.status
    except UnicodeDecodeError:
        print("plot_loss.py: a file of metrics is no UTF-8; --metrics of ftexec writes such files", file=sys.stderr)
        return 65
    except OSError as error:
        print(f"plot_loss.py: {error.filename or given.output}: {error.strerror}", file=sys.stderr)
        return 74
    return 0


if __name__ == "__main__":
    sys.exit(main())
