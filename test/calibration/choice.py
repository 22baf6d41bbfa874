#!/usr/bin/python3
"""Whether what `ftc tune` chooses is fast on this machine (Python's standard library, and libopenblas for a reference).

    test/calibration/choice.py [--bin=build/bin] [--model=char-gpt] [--rounds=3] [--draws=20] [--keep=DIR] [--json=FILE]

Calibrates the machine for two ranks over an emulated link, lets ftc tune choose for them, and trains what it chose, its nine next, the
best of each strategy, and points of its table that are drawn by a seed, in turns, `--rounds` times. Times are divided by how much slower
than usual a product and a copy that are none of ours were around them, each weighed by its part of the step. Exit status 0 when the choice is within 5% of the fastest, or
within the larger spread of the two.
"""
import json
import pathlib
import random
import re
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases as grid_cases  # noqa: E402
import grid as grids  # noqa: E402
from code_level import LEVEL  # noqa: E402

SEED, NEAR, RANKS = 7, 0.05, 2
SETTLING = grids.SETTLING


class Choice:
    def __init__(self, options, folder):
        self.grid = grids.Grid(options, folder)
        self.case = {"model": options.model, "ranks": RANKS, "strategy": "", "extra": "none", "link": True, "group": None}
        self.options, self.folder, self.ftc = options, folder, self.grid.programs.ftc
        self.machine, self.model = self.grid.machine(self.case, again=options.again), grid_cases.model_file(self.ftc, self.case, folder)
        self.settings = [f"--world-size={RANKS}", f"--target={self.machine}", f"--global-batch={options.global_batch}"]

    def tuned(self, *fixed):
        """Settings of the best rows and the seconds that are predicted for them."""
        rows = json.loads(self.ftc("tune", self.model, *self.settings, *fixed, "--json").stdout)["best"]
        return [(row["settings"], row["step_seconds"]) for row in rows]

    def table(self):
        """What `--space` prints, by setting: lists of flags."""
        text = self.ftc("tune", self.model, *self.settings, "--space").stdout
        lines = {line.split()[0]: line.split(None, 1)[1].split("; ") for line in text.splitlines()[2:]}
        layouts = [[f"--strategy={word.split()[0]}"] for word in lines["layout"] if "changes bits" not in word]
        batches = [re.match(r"(\d+) x (\d+)", word).groups() for word in lines["batch"]]
        schedules = []
        for word in lines["schedule"]:
            way, limit, bucket = re.match(r"(\w+), limit (\d+)(?:, buckets (\S+) MiB)?", word).groups()
            schedules.append([f"--prefetch={way}", f"--limit-all-gathers={limit}", f"--gather-bucket-mb={bucket or 0}", f"--reduce-bucket-mb={bucket or 0}",
                              f"--bucket-cap-mb={bucket or 25}"])
        return [layouts, [[f"--batch={batch}", f"--micro-steps={steps}"] for batch, steps in batches],
                [[f"--remat={word}"] for word in lines["remat"]], [[f"--offload={word}"] for word in lines["offload"]],
                [[f"--wrap={word.split()[0]}", f"--persistence-threshold={word.split()[-1]}"] for word in lines["wrap"]], schedules]

    def candidates(self):
        """{flags, sorted: how it came here}; the choice first."""
        found, table = {}, self.table()
        for number, (settings, _) in enumerate(self.tuned()):
            found.setdefault(self.flags(settings), f"choice {number + 1}")
        for [layout] in table[0]:
            for settings, _ in self.tuned(layout)[:1]:
                found.setdefault(self.flags(settings), "best of its strategy")
        draw = random.Random(SEED)
        for _ in range(self.options.draws):
            found.setdefault(tuple(sorted(flag for values in table for flag in draw.choice(values))), "drawn")
        return found

    def flags(self, settings):
        return tuple(sorted(f"--{name.replace('_', '-')}={value}" for name, value in settings.items() if name != "mesh"))

    def plan(self, number, flags):
        path = self.folder / f"candidate-{number}.bin"
        self.ftc("compile", self.model, *flags, f"--world-size={RANKS}", f"--target={self.machine}", f"--code={LEVEL}", "-o", path)
        return path

    def run(self):
        rows = [{"flags": flags, "from": origin, "plan": self.plan(number, flags), "runs": []}
                for number, (flags, origin) in enumerate(self.candidates().items())]
        for row in rows:
            row["predicted"] = self.grid.explain(row["plan"], self.case, self.machine)["seconds"]
            row["shares"] = self.grid.shares(row["plan"], self.case)
        for _ in range(self.options.rounds):
            before = self.grid.reference(self.case)
            for row in rows:
                steps = SETTLING + max(5, min(60, int(self.options.run_seconds / row["predicted"])))
                seconds = self.grid.step_ms(row["plan"], self.case, steps) * 1e-3
                after = self.grid.reference(self.case)
                row["runs"].append(seconds / statistics.mean(self.grid.slower(self.case, one, row["shares"]) for one in (before, after)))
                before = after
        for row in rows:
            row["plan"] = str(row["plan"])
            row["measured"] = statistics.median(row["runs"])
            row["spread"] = (max(row["runs"]) - min(row["runs"])) / 2 / row["measured"]
        return rows


def report(rows):
    for row in sorted(rows, key=lambda row: row["measured"]):
        print(f"{1e3 * row['measured']:8.1f} ms +-{100 * row['spread']:4.1f}%  predicted {1e3 * row['predicted']:8.1f}  {row['from']:<20} {' '.join(row['flags'])}")
    chosen, best = rows[0], min(rows, key=lambda row: row["measured"])
    behind = chosen["measured"] / best["measured"] - 1
    allowed = max(NEAR, chosen["spread"], best["spread"])
    print(f"the choice takes {100 * behind:.1f}% longer than the fastest of {len(rows)} (at most {100 * allowed:.1f}: 5, or the larger spread of the two)")
    return behind <= allowed


def main():
    parser = grids.parser_of(__doc__)
    parser.add_argument("--model", default="char-gpt", choices=list(grid_cases.MODELS))
    parser.add_argument("--global-batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=20, help="points of the table that a seed draws")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = Choice(options, folder).run()
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
        return 0 if report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
