#!/usr/bin/python3
"""Published training steps against what `ftc explain --json` predicts of them (Python's standard library alone).

    tools/published/published.py try CSV [--stack=PATTERN]
    tools/published/published.py fit CSV --stack=PATTERN [--predict=CSV] [-o machine.yaml]

The CSV has a row for each configuration, with the columns of rows.py. `try` compiles the plan of each and prints the predicted and the
measured time of a step, and the mean and the worst error by stack, which is a framework on a GPU. Rows that no plan stands for are named and
left out. What a row does not say (which attention kernel, tied head, types of state, launches, when gradients are reduced) the machine
file of its stack assumes, in runtime/targets/validation.

`fit` moves at most six constants of the machine file, each inside of its range (fit.py), until the smaller models of the stack come true,
and predicts the larger ones.

Options: --machines=DIR other machine files; --ftc=PATH; --keep=DIR plans are kept there and used again; --json.
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
import predict  # noqa: E402
import rows  # noqa: E402

BAD_INPUT = 65


def selected(path, pattern):
    found = [row for row in rows.read(path) if fnmatch.fnmatch(rows.stack(row), pattern)]
    if not found:
        raise ValueError(f"{path}: no row of a stack '{pattern}'")
    return found


def expressed(everything, machines, plans):
    """Cases of the rows that have a plan, and why the others have none."""
    def case(row):
        try:
            path, machine = machines.of(row)
            return fit.Case(row, path, machine, plans.plan(row, path, machine), rows.measured_seconds(row)), None
        except rows.NotExpressed as why:
            return None, f"{row['id']}: {why}"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(case, everything))
    return [one for one, _ in done if one], [why for _, why in done if why]


def summary(errors):
    sizes = [abs(error) for error in errors]
    return {"rows": len(sizes), "mean_percent": 100 * statistics.mean(sizes), "worst_percent": 100 * max(sizes)}


def print_rows(cases, predicted):
    print(f"{'id':<14} {'model':<14} {'seq':>6} {'ranks':>5} {'measured ms':>12} {'predicted ms':>12} {'error':>7}  memory")
    for case, step in zip(cases, predicted):
        row, fits = case.row, {True: "", False: "does not fit", None: ""}[step["fits"]]
        print(f"{row['id']:<14} {row['model']:<14} {row['seq']:>6} {row['n_gpus']:>5} {case.measured * 1e3:>12.1f} "
              f"{step['seconds'] * 1e3:>12.1f} {100 * (step['seconds'] / case.measured - 1):>+6.1f}%  {fits}")


def try_rows(arguments):
    plans, machines = predict.Plans(arguments.ftc, arguments.keep), predict.Machines(arguments.machines)
    cases, left_out = expressed(selected(arguments.csv, arguments.stack), machines, plans)
    if not cases:
        raise ValueError(f"{arguments.csv}: no row can be expressed: {'; '.join(left_out)}")
    predicted = fit.predict_all(plans, cases)
    by_stack = {}
    for case, step in zip(cases, predicted):
        by_stack.setdefault(rows.stack(case.row), []).append(step["seconds"] / case.measured - 1)
    stacks = {name: summary(errors) for name, errors in by_stack.items()}
    overall = summary([error for errors in by_stack.values() for error in errors])
    if arguments.json:
        print(json.dumps({"stacks": stacks, "all": overall, "left_out": left_out,
                          "rows": [{"id": case.row["id"], "measured_s": case.measured, "predicted_s": step["seconds"]}
                                   for case, step in zip(cases, predicted)]}, indent=2))
        return
    print_rows(cases, predicted)
    print()
    for name, one in [*stacks.items(), ("all rows", overall)]:
        print(f"{name:<48} {one['rows']:>3} rows, error: mean {one['mean_percent']:.1f}%, worst {one['worst_percent']:.1f}%")
    means = [one["mean_percent"] for one in stacks.values()]
    print(f"{'mean of the stacks':<48} {statistics.mean(means):>11.1f}%, worst stack {max(means):.1f}%")
    for why in left_out:
        print(f"left out: {why}")


def fit_rows(arguments):
    plans, machines = predict.Plans(arguments.ftc, arguments.keep), predict.Machines(arguments.machines)
    cases, left_out = expressed(selected(arguments.csv, arguments.stack), machines, plans)
    if not cases:
        raise ValueError(f"{arguments.csv}: no row can be expressed: {'; '.join(left_out)}")
    if len({case.machine_path for case in cases}) > 1:
        raise ValueError(f"{arguments.csv}: '{arguments.stack}' is rows of several machine files: "
                         f"{', '.join(sorted({case.machine_path.name for case in cases}))}")
    if arguments.predict:
        small, (large, others) = cases, expressed(selected(arguments.predict, arguments.stack), machines, plans)
        left_out += others
    else:
        small, large = fit.smaller_and_larger(cases)
    fitted = fit.search(plans, small)
    for title, some in (("fitted on", small), ("predicted", large)):
        if some:
            predicted = fit.predict_all(plans, some, fitted.machine)
            one = summary([step["seconds"] / case.measured - 1 for case, step in zip(some, predicted)])
            print(f"{title}: {one['rows']} rows, error: mean {one['mean_percent']:.1f}%, worst {one['worst_percent']:.1f}%")
            print_rows(some, predicted)
            print()
    for constant, value in fitted.values.items():
        print(f"{constant:<40} {value:.4g}   within {fit.RANGES[constant].low:g} .. {fit.RANGES[constant].high:g}")
    for why in left_out:
        print(f"left out: {why}")
    if arguments.output:
        of = f"{pathlib.Path(arguments.csv).name}, {arguments.stack}"
        which = "" if arguments.predict else "the smaller "
        note = f"# Of {cases[0].machine_path.name}, fitted to {which}rows of {of}: {', '.join(fitted.values)}.\n"
        pathlib.Path(arguments.output).write_text(note + machine_files.write(fitted.machine), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("try", "fit"))
    parser.add_argument("csv")
    parser.add_argument("--stack", default="*")
    parser.add_argument("--predict")
    parser.add_argument("-o", "--output")
    parser.add_argument("--machines", default=predict.MACHINES)
    parser.add_argument("--ftc", default=predict.ROOT / "build/bin/ftc")
    parser.add_argument("--keep")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        (try_rows if arguments.command == "try" else fit_rows)(arguments)
    except (ValueError, OSError, machine_files.BadFile) as error:
        print(f"published: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
