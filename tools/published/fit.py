"""Constants of a machine file that step times may move, and a search for the ones under which measured steps come true."""

import concurrent.futures
import dataclasses
import math
import os
import pathlib
import tempfile

import machine_files
import rows

MOST = 6  # constants of a stack


@dataclasses.dataclass
class Case:
    row: dict
    machine_path: pathlib.Path
    machine: dict
    plan: pathlib.Path
    measured: float  # seconds of a step
    step: dict  # as predict_all says of it on its own machine


@dataclasses.dataclass
class Range:
    """`paths` of the machine file are set to the value or, `times`, multiplied by it."""
    low: float
    high: float
    paths: tuple
    times: bool = False


# From published rates of kernels and links, as far as there are such; the others are what the term can be at all.
RANGES = {
    # Products in short bursts against long runs: at a limit of power, with data that is not zero.
    "sustained": Range(0.70, 1.0, ("compute.sustained",)),
    # Published curves of attention are known to a few percent, and hold for one version of a kernel.
    "attention": Range(0.75, 1.1, ("attention",), times=True),
    # Compute beside collectives of NCCL: 0.19 on average (arXiv 2507.03114), 0.30 and more beside products (pytorch PR #179937).
    "overlap": Range(0.15, 0.35, ("overlap.all_gather.kernels", "overlap.reduce_scatter.kernels", "overlap.all_reduce.kernels")),
    # Passes over memory of kernels that are not joined, by what joined ones move.
    "elementwise_bytes": Range(1.0, 6.0, ("stack.elementwise_bytes",)),
    # Logits in pieces stay in caches (0); op by op in fp32 they go through memory a dozen times.
    "logit_bytes": Range(0.0, 50.0, ("stack.logit_bytes",)),
    # Eager launches of some PyTorch ops for each kernel of the plan.
    "launch_us": Range(0.0, 40.0, ("stack.launch_us",)),
    # Above 100 MB 0.85 to 0.90 of the data sheet (copies on H100 and GH200), of which files have 0.87.
    "memory": Range(0.977, 1.034, ("memory.gigabytes_per_s",), times=True),
    "half_k": Range(0.0, 400.0, ("compute.products.half_k",)),
    "links": Range(0.6, 1.1, ("links.node.gigabytes_per_s",), times=True),
}
USUAL = ("sustained", "attention", "elementwise_bytes", "logit_bytes", "overlap", "launch_us")


def moved(machine, values):
    for name, value in values.items():
        for path in RANGES[name].paths:
            if RANGES[name].times:
                machine = machine_files.scale(machine, path, value)
            else:
                machine = machine_files.put(machine, path, f"{value:.9g}")
    return machine


def predict_all(plans, cases, machine=None):
    """Of each case the part `step` of ftc explain --json, on its own machine or on this one, on nodes of its row's size."""
    with tempfile.TemporaryDirectory() as folder:
        def file_of(case):
            known = case.machine if machine is None else machine
            ranks = rows.ranks_on_node(case.row, known)
            if machine is None and ranks == int(known["ranks_per_node"]):
                return case.machine_path
            path = pathlib.Path(folder) / f"{case.machine_path.stem}-{ranks}.yaml"
            if not path.exists():
                path.write_text(machine_files.write(machine_files.put(known, "ranks_per_node", ranks)), encoding="utf-8")
            return path
        files = [file_of(case) for case in cases]

        def step(case, path):
            said = plans.explain(case.plan, path, rows.number(case.row, "n_gpus"))["step"]
            return {**said, "seconds": rows.step_seconds(case.row, case.machine.get("assumptions", {}), said)}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(step, cases, files))


def smaller_and_larger(cases):
    """By size of the model, the half with the smaller ones; of a single model the shorter half of the sequences."""
    sizes = sorted({rows.size(case.row) for case in cases})
    if len(sizes) > 1:
        limit = sizes[(len(sizes) - 1) // 2] if len(sizes) % 2 == 0 else sizes[len(sizes) // 2]
        return ([case for case in cases if rows.size(case.row) <= limit], [case for case in cases if rows.size(case.row) > limit])
    ordered = sorted(cases, key=lambda case: (rows.number(case.row, "seq"), case.row["id"]))
    half = (len(ordered) + 1) // 2
    return ordered[:half], ordered[half:]


@dataclasses.dataclass
class Fitted:
    values: dict
    machine: dict


def start_of(machine, constant):
    known = RANGES[constant]
    if known.times:
        return 1.0
    stated = machine_files.get(machine, known.paths[0])
    return min(max(float(stated), known.low), known.high) if stated is not None else known.low


def constants_of(machine, cases):
    stated = machine_files.get(machine, "assumptions.fit")
    names = [name.strip() for name in stated.split(",")] if stated else list(USUAL)
    unknown = [name for name in names if name not in RANGES]
    if unknown or len(names) > MOST:
        raise ValueError(f"assumptions.fit: at most {MOST} of {', '.join(RANGES)}, not {stated}")
    # What nothing in the rows depends on is not moved, nor more than there are rows.
    if all(rows.number(case.row, "n_gpus") == 1 for case in cases):
        names = [name for name in names if name not in ("overlap", "links")]
    return names[:len(cases)]


def solve(matrix, right):
    """Of a few linear equations, by elimination with pivots."""
    rows_of = [list(line) + [value] for line, value in zip(matrix, right)]
    for i in range(len(rows_of)):
        pivot = max(range(i, len(rows_of)), key=lambda r: abs(rows_of[r][i]))
        rows_of[i], rows_of[pivot] = rows_of[pivot], rows_of[i]
        for r in range(len(rows_of)):
            if r != i and rows_of[i][i]:
                factor = rows_of[r][i] / rows_of[i][i]
                rows_of[r] = [x - factor * y for x, y in zip(rows_of[r], rows_of[i])]
    return [line[-1] / line[i] if line[i] else 0.0 for i, line in enumerate(rows_of)]


def least_squares(residuals, start, steps=12, probe=0.02):
    """Levenberg-Marquardt inside of the unit cube, from `start`: where the sum of squares of `residuals` is least."""
    best, values = list(start), residuals(start)
    damping = 1e-2
    for _ in range(steps):
        slopes = []
        for i, x in enumerate(best):
            moved_to = x + probe if x + probe <= 1 else x - probe
            there = residuals([moved_to if j == i else y for j, y in enumerate(best)])
            slopes.append([(after - before) / (moved_to - x) for after, before in zip(there, values)])
        square = [[sum(p * q for p, q in zip(one, other)) for other in slopes] for one in slopes]
        down = [-sum(p * r for p, r in zip(one, values)) for one in slopes]
        before = sum(r * r for r in values)
        for _ in range(6):
            damped = [[x * (1 + damping) + (damping * 1e-3 if i == j else 0) if i == j else x for j, x in enumerate(line)]
                      for i, line in enumerate(square)]
            trial = [min(max(x + step, 0.0), 1.0) for x, step in zip(best, solve(damped, down))]
            there = residuals(trial)
            if sum(r * r for r in there) < before:
                break
            damping *= 4
        else:
            return best
        gained = before - sum(r * r for r in there)
        best, values, damping = trial, there, damping / 3
        if gained < 1e-4 * before:
            return best
    return best


# How much a constant that stands at the other end of its range counts, against an error of a row of so much.
FAR = 0.006


def search(plans, cases):
    """Errors of the rows are made least; a constant that explains nothing stays where the file has it."""
    machine = cases[0].machine
    names = constants_of(machine, cases)
    ranges = [RANGES[name] for name in names]
    start = [(start_of(machine, name) - one.low) / (one.high - one.low) for name, one in zip(names, ranges)]

    def values_at(point):
        return {name: one.low + x * (one.high - one.low) for name, one, x in zip(names, ranges, point)}

    def residuals(point):
        steps = predict_all(plans, cases, moved(machine, values_at(point)))
        errors = [math.log(step["seconds"] / case.measured) for step, case in zip(steps, cases)]
        return errors + [FAR * (x - known) for x, known in zip(point, start)]

    best = values_at(least_squares(residuals, start))
    return Fitted(best, moved(machine, best))
