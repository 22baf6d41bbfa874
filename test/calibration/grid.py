#!/usr/bin/python3
"""How true predicted step times come on this machine (Python's standard library, and libopenblas for a reference).

    test/calibration/grid.py [--bin=build/bin] [--cases=60] [--runs=5] [--keep=DIR] [--json=FILE] [--seconds=60]

Calibrates the machine for one and for two ranks, the second also over an emulated link; then, for each case of cases.py, compiles it for
that machine, times its kernels (ftexec plan.bin --calibrate), predicts its step with and without them (ftc explain --json), and trains it
`--runs` times. Before and after each run a product and a copy are timed that are none of ours: a run between which they differ by more
than 3% is done again (at most `--again` times, and then counted as one that was not quiet); else its time is divided by how much slower
than usual they were. Measured is the median over the runs of the medians of steps after the fifth; their spread stands beside each error.

Prints a line for each case and what the issue asks for: mean and worst error of both, how many medians lie inside their interval, and
whether strategies are ranked as they were measured wherever they differ by more than the spread. Exit status 0 when all of it is within
what is asked, 1 when not.
"""
import argparse
import array
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

SETTLING, QUIET = 5, 0.03
LIMITS = {"timed": (0.06, 0.15), "general": (0.10, 0.25)}  # mean, worst
INSIDE = 0.8


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
        self.usual = {}  # seconds of the reference while the machine was calibrated, by ranks
        self.text, self.tokens = folder / "text.txt", folder / "tokens.bin"
        self.text.write_bytes((pathlib.Path(__file__).resolve().parents[2] / "LICENSE").read_bytes() * 40)
        draw = random.Random(1)
        array.array("H", (draw.randrange(8192) for _ in range(1 << 18))).tofile(self.tokens.open("wb"))

    def ftexec(self, case, *arguments):
        return self.programs.ftexec(case["ranks"], self.threads[case["ranks"]], *arguments)

    def machine(self, case):
        """The machine file for a case's ranks and link, measured once."""
        path = self.folder / f"machine-{case['ranks']}{'-link' if case['link'] else ''}.yaml"
        if not path.exists():
            before = reference.of_machine(case["ranks"], self.threads[case["ranks"]])
            done = self.ftexec(case, f"--calibrate={path}", f"--calibrate-seconds={self.options.seconds}", *link_option(case))
            after = reference.of_machine(case["ranks"], self.threads[case["ranks"]])
            print(done.stdout.strip(), done.stderr.strip(), flush=True)
            path.with_suffix(".json").write_text(json.dumps([statistics.mean(pair) for pair in zip(before, after)]))
        self.usual.setdefault(case["ranks"], json.loads(path.with_suffix(".json").read_text()))
        return path

    def plan(self, case):
        path = self.folder / (grid_cases.name(case).replace("/", "-") + ".bin")
        if not path.exists():
            model = grid_cases.model_file(self.programs.ftc, case, self.folder)
            self.programs.ftc("compile", model, f"--strategy={case['strategy']}", f"--world-size={case['ranks']}", f"--code={LEVEL}",
                              f"--target={self.machine(case)}", *grid_cases.EXTRAS[case["extra"]], "-o", path)
        return path

    def explain(self, plan, case, machine):
        return json.loads(self.programs.ftc("explain", plan, f"--world-size={case['ranks']}", f"--target={machine}", "--json").stdout)["step"]

    def reference(self, case):
        return reference.of_machine(case["ranks"], self.threads[case["ranks"]])

    def slower(self, case, seconds):
        """How much longer the reference took than usual: of product and copy the mean."""
        return statistics.mean(now / usual for now, usual in zip(seconds, self.usual[case["ranks"]]))

    def step_ms(self, plan, case, steps):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        data = [f"--data={self.text}"] if grid_cases.reads_text(case) else [f"--data={self.tokens}", "--data-format=u16"]
        self.ftexec(case, plan, *data, f"--steps={steps}", f"--metrics={metrics}", "--progress=off",
                             *link_option(case))
        rows = [json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()]
        return statistics.median(rows[SETTLING:])

    def measured(self, plan, case, predicted):
        """Seconds of a step by run, each divided by how slow the machine was, and how many were not quiet."""
        steps = SETTLING + max(7, min(200, int(self.options.run_seconds / predicted)))
        taken, noisy = [], 0
        before = self.reference(case)
        for _ in range(self.options.runs):
            for again in range(self.options.again + 1):
                seconds = self.step_ms(plan, case, steps) * 1e-3
                after = self.reference(case)
                first, second, before = self.slower(case, before), self.slower(case, after), after
                quiet = abs(second / first - 1) <= QUIET
                if quiet or again == self.options.again:
                    break
            noisy += not quiet
            taken.append(seconds / statistics.mean([first, second]))
        return taken, noisy

    def run(self, case):
        machine, plan = self.machine(case), self.plan(case)
        kernels = self.folder / "kernels.yaml"
        before = self.reference(case)
        self.ftexec(case, plan, f"--calibrate={kernels}", f"--calibrate-seconds={self.options.plan_seconds}")
        timed_slower = self.slower(case, [statistics.mean(pair) for pair in zip(before, self.reference(case))])
        general, timed = self.explain(plan, case, machine), self.explain(plan, case, kernels)
        taken, noisy = self.measured(plan, case, timed["seconds"])
        middle = statistics.median(taken)
        return {"case": grid_cases.name(case), **case, "measured": middle, "runs": taken, "noisy_runs": noisy,
                "spread": (max(taken) - min(taken)) / 2 / middle,
                "general": general["seconds"], "general_interval": [general["seconds_low"], general["seconds_high"]],
                "timed": timed["seconds"] / timed_slower,
                "timed_interval": [timed["seconds_low"] / timed_slower, timed["seconds_high"] / timed_slower]}


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--cases", type=int, default=grid_cases.MOST, help="the first so many")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--again", type=int, default=2, help="how often a run that was not quiet is done again")
    parser.add_argument("--seconds", type=float, default=60, help="of a calibration of the machine")
    parser.add_argument("--plan-seconds", type=float, default=4, help="of timing a plan's kernels")
    parser.add_argument("--run-seconds", type=float, default=1.5, help="of the steps of a run that count")
    parser.add_argument("--threads", type=int, default=0, help="of each rank; the cores, divided among the ranks, unless given")
    parser.add_argument("--keep", help="machine files and plans are kept there")
    parser.add_argument("--json", help="results are written there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        grid, rows = Grid(options, folder), []
        for case in grid_cases.all_cases(options.cases):
            if options.only not in grid_cases.name(case):
                continue
            row = grid.run(case)
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
