#!/usr/bin/python3
"""Published training steps against what `ftc explain --json` predicts of them (Python's standard library alone).

    tools/published/published.py try CSV [--stack=PATTERN]
    tools/published/published.py fit CSV --stack=PATTERN [--predict=CSV] [-o machine.yaml]

The CSV has a row for each configuration, with the columns of rows.py. `try` compiles the plan of each and prints the predicted and the
measured time of a step, and the mean and the worst error by stack, which is a framework on a GPU. Rows that no plan stands for are named
and left out. What a row does not say (which attention kernel, tied head, types of state, launches, when gradients are reduced) the machine
file of its stack assumes, in runtime/targets/validation.

`fit` moves at most six constants of the machine file, each inside of its range (fit.py), until the smaller models of the stack come true,
and predicts the larger ones, or those rows of another CSV that have the same machine file. Rows of several machine files are fitted apart.

Options: --machine=PATTERN only rows of these machine files, as torchtitan-h100; --machines=DIR other machine files; --ftc=PATH; --keep=DIR
plans are kept there and used again; --json.
Exit status 0; 65 where the CSV or a machine file is bad, or no row can be expressed.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fit  # noqa: E402
import machine_files  # noqa: E402
import machines as machines_of_rows  # noqa: E402
import predict  # noqa: E402
import rows  # noqa: E402

BAD_INPUT = 65


def selected(path, pattern):
    found = [row for row in rows.read(path) if fnmatch.fnmatch(rows.stack(row), pattern)]
    if not found:
        raise ValueError(f"{path}: no row of a stack '{pattern}'")
    return found


class Cases:
    """Rows of a CSV that are chosen and have a plan that `ftc explain` takes, and why the others have none."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.plans = predict.Plans(arguments.ftc, arguments.keep)
        self.machines = machines_of_rows.Machines(arguments.machines)
        self.left_out = []

    def _case(self, row):
        try:
            path, machine = self.machines.of(row)
            if not fnmatch.fnmatch(path.stem, self.arguments.machine):
                return None, None
            case = fit.Case(row, path, machine, self.plans.plan(row, path, machine), rows.measured_seconds(row), {})
            case.step = fit.predict_all(self.plans, [case])[0]
            return case, None
        except rows.NotExpressed as why:
            return None, f"{row['id']}: {why}"

    def of(self, path):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(self._case, selected(path, self.arguments.stack)))
        self.left_out += [why for _, why in done if why]
        cases = [case for case, _ in done if case]
        if not cases:
            raise ValueError(f"{path}: no row can be expressed: {'; '.join(self.left_out) or f'none of {self.arguments.machine}'}")
        return cases


def summary(errors):
    sizes = [abs(error) for error in errors]
    return {"rows": len(sizes), "mean_percent": 100 * statistics.mean(sizes), "worst_percent": 100 * max(sizes)}


def errors_of(cases, steps):
    return [step["seconds"] / case.measured - 1 for case, step in zip(cases, steps)]


def rows_of(cases, steps):
    return [{"id": case.row["id"], "measured_s": case.measured, "predicted_s": step["seconds"]} for case, step in zip(cases, steps)]


def print_rows(cases, predicted):
    print(f"{'id':<14} {'model':<14} {'seq':>6} {'ranks':>5} {'measured ms':>12} {'predicted ms':>12} {'error':>7}  memory")
    for case, step in zip(cases, predicted):
        row, fits = case.row, {True: "", False: "does not fit", None: ""}[step["fits"]]
        print(f"{row['id']:<14} {row['model']:<14} {row['seq']:>6} {row['n_gpus']:>5} {case.measured * 1e3:>12.1f} "
              f"{step['seconds'] * 1e3:>12.1f} {100 * (step['seconds'] / case.measured - 1):>+6.1f}%  {fits}".rstrip())


def try_rows(arguments):
    known = Cases(arguments)
    cases = known.of(arguments.csv)
    predicted = [case.step for case in cases]
    by_stack = {}
    for case, error in zip(cases, errors_of(cases, predicted)):
        by_stack.setdefault(rows.stack(case.row), []).append(error)
    stacks = {name: summary(errors) for name, errors in by_stack.items()}
    overall = summary(errors_of(cases, predicted))
    if arguments.json:
        print(json.dumps({"stacks": stacks, "all": overall, "left_out": known.left_out, "rows": rows_of(cases, predicted)}, indent=2))
        return
    print_rows(cases, predicted)
    print()
    for name, one in [*stacks.items(), ("all rows", overall)]:
        print(f"{name:<48} {one['rows']:>3} rows, error: mean {one['mean_percent']:.1f}%, worst {one['worst_percent']:.1f}%")
    means = [one["mean_percent"] for one in stacks.values()]
    print(f"{'mean of the stacks':<48} {statistics.mean(means):>11.1f}%, worst stack {max(means):.1f}%")
    for why in known.left_out:
        print(f"left out: {why}")


def fit_file(plans, cases, larger):
    """Of the rows of one machine file: what was found, and what comes of it for (title, cases, steps)."""
    small, large = (cases, larger) if larger is not None else fit.smaller_and_larger(cases)
    fitted = fit.search(plans, small)
    return fitted, [(title, some, fit.predict_all(plans, some, fitted.machine))
                    for title, some in (("fitted on", small), ("predicted", large)) if some]


def print_fit(name, fitted, parts):
    print(name)
    for title, some, predicted in parts:
        one = summary(errors_of(some, predicted))
        print(f"{title}: {one['rows']} rows, error: mean {one['mean_percent']:.1f}%, worst {one['worst_percent']:.1f}%")
        print_rows(some, predicted)
        print()
    for constant, value in fitted.values.items():
        print(f"{constant:<40} {value:.4g}   within {fit.RANGES[constant].low:g} .. {fit.RANGES[constant].high:g}")
    print()


def fit_rows(arguments):
    known, by_file = Cases(arguments), {}
    for case in known.of(arguments.csv):
        by_file.setdefault(case.machine_path, []).append(case)
    if arguments.output and len(by_file) > 1:
        names = ", ".join(sorted(path.stem for path in by_file))
        raise ValueError(f"{arguments.csv}: -o is for one machine file, not {names}: choose by --machine")
    others = known.of(arguments.predict) if arguments.predict else None
    known.left_out += [f"{case.row['id']}: no row of {case.machine_path.name} was fitted"
                       for case in others or () if case.machine_path not in by_file]
    found = []
    for path, cases in by_file.items():
        larger = None if others is None else [case for case in others if case.machine_path == path]
        fitted, parts = fit_file(known.plans, cases, larger)
        results = {title.replace(" ", "_"): {**summary(errors_of(some, steps)), "of": rows_of(some, steps)} for title, some, steps in parts}
        found.append({"machine": path.name, "constants": fitted.values, **results})
        if not arguments.json:
            print_fit(path.name, fitted, parts)
    if arguments.json:
        print(json.dumps({"fits": found, "left_out": known.left_out}, indent=2))
    for why in () if arguments.json else known.left_out:
        print(f"left out: {why}")
    if arguments.output:
        of = f"{pathlib.Path(arguments.csv).name}, {arguments.stack}"
        which = "" if arguments.predict else "the smaller "
        note = f"# Of {path.name}, fitted to {which}rows of {of}: {', '.join(fitted.values)}.\n"
        pathlib.Path(arguments.output).write_text(note + machine_files.write(fitted.machine), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("try", "fit"))
    parser.add_argument("csv")
    parser.add_argument("--stack", default="*")
    parser.add_argument("--machine", default="*")
    parser.add_argument("--predict")
    parser.add_argument("-o", "--output")
    parser.add_argument("--machines", default=machines_of_rows.MACHINES)
    parser.add_argument("--ftc", default=machines_of_rows.ROOT / "build/bin/ftc")
    parser.add_argument("--keep")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        (try_rows if arguments.command == "try" else fit_rows)(arguments)
    except (ValueError, OSError, machine_files.BadFile, rows.NotExpressed) as error:
        print(f"published: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
