#!/usr/bin/python3
"""How true predicted step times come on this machine (Python's standard library, and libopenblas for a reference).

    test/calibration/grid.py [--bin=build/bin] [--cases=60] [--runs=5] [--renew=4] [--keep=DIR] [--json=FILE] [--seconds=20]

Calibrates the machine for one and for two ranks, the second also over an emulated link, and anew after every `--renew` cases, each time by
three files of `--seconds`; then, for each case of cases.py, compiles it for that machine, and `--runs` times in turns trains it
and (`--timings` times) times its kernels (ftexec plan.bin --calibrate) and predicts its step with and without them (ftc explain --json).
Before and after each a product and a copy are timed that are none of ours, which say how much slower than when the machine was first
calibrated a step is, each weighed by the part of the step that it stands for (by the prediction from the machine's file). Where that differs
by more than 3% from before to after it is done again (at most `--again` times, and then counted as one that was not quiet); the time is
divided by it. Measured is the median over the runs of the medians of steps after the fifth, their spread stands beside each error;
predicted with the plan's kernels is the median over its timings, and by the machine's file alone that of the last three files.

Prints a line for each case and what the issue asks for: mean and worst error of both, how many medians lie inside their interval, and
whether strategies are ranked as they were measured wherever they differ by more than the spread. Exit status 0 when all of it is within
what is asked, 1 when not.
"""
import argparse
import array
import collections
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases as grid_cases  # noqa: E402
import reference  # noqa: E402
from code_level import LEVEL  # noqa: E402

SETTLING, QUIET, ANCHOR_SECONDS = 5, 0.03, 2
TURNS = 3  # files of a time that the machine is measured, with the reference in between
LIMITS = {"timed": (0.06, 0.15), "general": (0.10, 0.25)}  # mean, worst
INSIDE = 0.8
INTERVAL = ("seconds", "seconds_low", "seconds_high")


def middle(predictions):
    """Of predictions of one step, each with its interval, the one in the middle."""
    return sorted(predictions)[len(predictions) // 2]


class Programs:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()

    def run(self, program, *arguments):
        done = subprocess.run([self.folder / program, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
        return done

    def ftc(self, *arguments):
        return self.run("ftc", *arguments)

    def ftexec(self, ranks, threads, *arguments):
        arguments = [*arguments, f"--threads={threads}"]
        if ranks == 1:
            return self.run("ftexec", *arguments)
        return self.run("ftrun", f"--nproc-per-node={ranks}", "--standalone", self.folder / "ftexec", *arguments)


def link_option(case):
    return [f"--emulate-link={grid_cases.LINK}"] if case["link"] else []


class Grid:
    def __init__(self, options, folder):
        self.options, self.folder, self.programs = options, folder, Programs(options.bin)
        self.threads = {ranks: options.threads or max(1, os.cpu_count() // ranks) for ranks in (1, 2)}
        self.usual = {}  # seconds of the reference while the machine was calibrated, by machine file
        self.text, self.tokens = folder / "text.txt", folder / "tokens.bin"
        self.text.write_bytes((pathlib.Path(__file__).resolve().parents[2] / "LICENSE").read_bytes() * 40)
        draw = random.Random(1)
        array.array("H", (draw.randrange(8192) for _ in range(1 << 18))).tofile(self.tokens.open("wb"))

    def ftexec(self, case, *arguments):
        return self.programs.ftexec(case["ranks"], self.threads[case["ranks"]], *arguments)

    def machine(self, case, number=0, turn=0, again=0):
        """A machine file for a case's ranks and link, measured now unless it is there: of the number-th time that the machine was measured for
        them the turn-th file. The first of all is the one that plans are compiled for. Where the reference did not stay what it was it is
        measured `again` so many times at most, and the quietest counts."""
        path = self.folder / f"machine-{case['ranks']}{'-link' if case['link'] else ''}-{number + 1}-{turn + 1}.yaml"
        anchors = path.with_suffix(".json")
        if not path.exists():
            quietest = None
            for _ in range(again + 1):
                made = path.with_suffix(".new.yaml")
                before = self.reference(case, ANCHOR_SECONDS)
                done = self.ftexec(case, f"--calibrate={made}", f"--calibrate-seconds={self.options.seconds}", *link_option(case))
                after = self.reference(case, ANCHOR_SECONDS)
                apart = max(abs(b / a - 1) for a, b in zip(before, after))
                if quietest is None or apart < quietest:
                    quietest = apart
                    anchors.write_text(json.dumps([statistics.mean(pair) for pair in zip(before, after)]))
                    made.rename(path)
                print(done.stdout.strip(), done.stderr.strip(), f"(the reference moved by {100 * apart:.1f}%)", flush=True)
                if apart <= QUIET:
                    break
        self.usual.setdefault(path, json.loads(anchors.read_text()))
        return path

    def general(self, plan, case, number, shares):
        """The step as those machine files alone have it, each on the machine as it was when the first was measured, the one in the middle."""
        predictions = []
        for machine in [self.machine(case, number, turn) for turn in range(TURNS)]:
            step, slower = self.explain(plan, case, machine), self.slower(case, self.usual[machine], shares)
            predictions.append([step[key] / slower for key in INTERVAL])
        return middle(predictions)

    def plan(self, case):
        path = self.folder / (grid_cases.name(case).replace("/", "-") + ".bin")
        if not path.exists():
            model = grid_cases.model_file(self.programs.ftc, case, self.folder)
            self.programs.ftc("compile", model, f"--strategy={case['strategy']}", f"--world-size={case['ranks']}", f"--code={LEVEL}",
                              f"--target={self.machine(case)}", *grid_cases.EXTRAS[case["extra"]], "-o", path)
        return path

    def explain(self, plan, case, machine):
        return json.loads(self.programs.ftc("explain", plan, f"--world-size={case['ranks']}", f"--target={machine}", "--json").stdout)["step"]

    def reference(self, case, seconds=reference.SECONDS):
        return reference.of_machine(case["ranks"] * self.threads[case["ranks"]], seconds)

    def shares(self, plan, case):
        """The parts of a step that take longer as a product does, and as a copy does: what waits for an emulated link is neither."""
        sources = self.explain(plan, case, self.machine(case))["sources"]
        product, copy = sources["products"] + sources["attention"], sources["memory"] + sources["copies"]
        if not case["link"]:
            copy += sources["collectives"]
        return [part / sum(sources.values()) for part in (product, copy)]

    def slower(self, case, seconds, shares):
        """How much longer a step with those shares takes than when the machine was first measured, as the reference has it."""
        return 1 + sum(share * (now / usual - 1) for share, now, usual in zip(shares, seconds, self.usual[self.machine(case)]))

    def normalized(self, case, shares, before, measure):
        """What measure() returns, how slow the machine was meanwhile, whether it was quiet, and the reference after it."""
        for again in range(self.options.again + 1):
            result = measure()
            after = self.reference(case)
            first, second, before = self.slower(case, before, shares), self.slower(case, after, shares), after
            quiet = abs(second / first - 1) <= QUIET
            if quiet or again == self.options.again:
                return result, statistics.mean([first, second]), quiet, after

    def step_ms(self, plan, case, steps):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        data = [f"--data={self.text}"] if grid_cases.reads_text(case) else [f"--data={self.tokens}", "--data-format=u16"]
        self.ftexec(case, plan, *data, f"--steps={steps}", f"--metrics={metrics}", "--progress=off",
                             *link_option(case))
        rows = [json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()]
        return statistics.median(rows[SETTLING:])

    def predicted(self, plan, case):
        """The step as ftc explain has it with the plan's kernels timed just now."""
        kernels = self.folder / "kernels.yaml"
        self.ftexec(case, plan, f"--calibrate={kernels}", f"--calibrate-seconds={self.options.plan_seconds}")
        return self.explain(plan, case, kernels)

    def run(self, case, number):
        plan = self.plan(case)
        shares = self.shares(plan, case)
        general = self.general(plan, case, number, shares)
        steps = SETTLING + max(7, min(200, int(self.options.run_seconds / general[0])))
        taken, timings, noisy, after = [], [], 0, self.reference(case)
        for run in range(max(1, self.options.runs)):
            seconds, slower, quiet, after = self.normalized(case, shares, after, lambda: self.step_ms(plan, case, steps) * 1e-3)
            taken.append(seconds / slower)
            noisy += not quiet
            if run < max(1, self.options.timings):
                step, slower, _, after = self.normalized(case, shares, after, lambda: self.predicted(plan, case))
                timings.append([step[key] / slower for key in INTERVAL])
        timed, measured = middle(timings), statistics.median(taken)
        return {"case": grid_cases.name(case), **case, "measured": measured, "runs": taken, "noisy_runs": noisy,
                "spread": (max(taken) - min(taken)) / 2 / measured,
                "general": general[0], "general_interval": general[1:], "file": number,
                "timed": timed[0], "timed_interval": timed[1:], "timings": timings}


def error(row, kind):
    return row[kind] / row["measured"] - 1


def inside(row, kind):
    low, high = row[f"{kind}_interval"]
    return low <= row["measured"] <= high


def misranked(rows):
    """Pairs of strategies that differ by more than their spread, and are predicted the other way round."""
    wrong, pairs = [], 0
    for group in sorted({row["group"] for row in rows if row["group"]}):
        members = [row for row in rows if row["group"] == group]
        for i, a in enumerate(members):
            for b in members[i + 1:]:
                apart = abs(a["measured"] - b["measured"]) / min(a["measured"], b["measured"])
                if apart <= a["spread"] + b["spread"]:
                    continue
                pairs += 1
                if (a["measured"] < b["measured"]) != (a["timed"] < b["timed"]):
                    wrong.append(f"{a['case']} and {b['case']}")
    return wrong, pairs


def report(rows):
    within = True
    for kind, (mean_limit, worst_limit) in LIMITS.items():
        sizes = [abs(error(row, kind)) for row in rows]
        share = statistics.mean(inside(row, kind) for row in rows)
        half = max((row[f"{kind}_interval"][1] - row[f"{kind}_interval"][0]) / sum(row[f"{kind}_interval"]) for row in rows)
        print(f"{kind}: mean error {100 * statistics.mean(sizes):.1f}% (at most {100 * mean_limit:.0f}), worst {100 * max(sizes):.1f}% "
              f"(at most {100 * worst_limit:.0f}); {100 * share:.0f}% of medians inside their interval (at least {100 * INSIDE:.0f}), "
              f"widest half {100 * half:.1f}%")
        within &= statistics.mean(sizes) <= mean_limit and max(sizes) <= worst_limit and share >= INSIDE
    wrong, pairs = misranked(rows)
    print(f"ranking: {pairs - len(wrong)} of {pairs} pairs of strategies that differ by more than their spread are as predicted"
          + "".join(f"\n  not: {one}" for one in wrong))
    print(f"{sum(row['noisy_runs'] for row in rows)} of {sum(len(row['runs']) for row in rows)} runs were not quiet")
    return within and not wrong


def parser_of(doc):
    """With what all programs are told that measure by a Grid."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--again", type=int, default=2, help="how often what was not quiet is done again")
    parser.add_argument("--seconds", type=float, default=60, help="of a calibration of the machine")
    parser.add_argument("--run-seconds", type=float, default=1.5, help="of the steps of a run that count")
    parser.add_argument("--threads", type=int, default=0, help="of each rank; the cores, divided among the ranks, unless given")
    parser.add_argument("--keep", help="machine files and plans are kept there")
    parser.add_argument("--json", help="results are written there")
    return parser


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--cases", type=int, default=grid_cases.MOST, help="the first so many")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timings", type=int, default=3, help="of a plan's kernels, one behind each of the first runs")
    parser.add_argument("--renew", type=int, default=4, help="after so many cases of a number of ranks and a link the machine is measured again")
    parser.set_defaults(seconds=20)  # three files at a time
    parser.add_argument("--plan-seconds", type=float, default=3, help="of timing a plan's kernels")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        cases = [case for case in grid_cases.all_cases(options.cases) if options.only in grid_cases.name(case)]
        cases.sort(key=lambda case: (case["ranks"], case["link"]))  # the same machine files one after the other
        grid, rows, passed = Grid(options, folder), [], collections.Counter()
        for case in cases:
            layout = (case["ranks"], case["link"])
            row = grid.run(case, passed[layout] // options.renew)
            passed[layout] += 1
            rows.append(row)
            print(f"{row['case']:<50} measured {1e3 * row['measured']:8.1f} ms +-{100 * row['spread']:4.1f}%  "
                  f"timed {1e3 * row['timed']:8.1f} ({100 * error(row, 'timed'):+5.1f}%){'' if inside(row, 'timed') else ' outside'}  "
                  f"general {1e3 * row['general']:8.1f} ({100 * error(row, 'general'):+5.1f}%){'' if inside(row, 'general') else ' outside'}",
                  flush=True)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
        return 0 if report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
