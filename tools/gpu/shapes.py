"""Kernels in the shapes that real models have, once each, compared with float64 on a sample, by the conformance program."""
import re

import conformance
from part import Part
from runner import Failed, Skipped, attempt

SHAPES = ("attention_64x1024x12x64", "attention_32x1024x12_on_2x128", "loss_8192x768x50257")
ASKED = "--gtest_also_run_disabled_tests"


def modes_of(shape):
    """How kernels are chosen: by timing; the same every time; and of attention our own kernel."""
    return ("fast", "deterministic", "own") if shape.startswith("attention") else ("fast", "deterministic")


def run_asked(context, names, limit=120.0, env=None):
    """What the program printed of tests that it runs only when asked to, all of which passed."""
    results, said = conformance.run_program(context, ASKED, f"--gtest_filter={names}", limit=limit, env=env)
    text = said.output if isinstance(said, Failed) else said
    wrong = [result for result in results.values() if result not in ("passed", "skipped")]
    if isinstance(said, Failed) or wrong:
        lines = [line for line in "\n".join(wrong or [str(said)]).splitlines() if line.strip()]
        raise Failed(" ".join(lines[:4])[:300], text)
    if not results:
        raise Failed(f"the program has no test {names}", text)
    if "skipped" in results.values():
        reason = re.search(r"skipped: (.*)", text)
        if reason and "CUDA device" in reason[1]:
            raise Failed(f"the test sees no device: {reason[1]}", text)
        raise Skipped(reason[1] if reason else "the test was skipped")
    return text


def told(text):
    """What a test has printed of itself, by what it came to: lines that are indented."""
    return [line.strip() for line in text.splitlines() if line.startswith("  ") and ": " in line]


def compared(text):
    """What each comparison came to, as a part of what is allowed."""
    found = [float(part[1]) for part in re.finditer(r"^  .*: ([\d.]+) of what is allowed$", text, re.MULTILINE)]
    if not found:
        raise Failed("nothing was compared", text)
    return found


def every_element(text, mode):
    """In words, how many results were looked at element by element: all for being finite, and all twice where bits are promised."""
    wanted = "finite" if mode == "fast" else "finite and the same bits twice"
    found = len(re.findall(rf"^  .*, {wanted}: [\d.]+ of what is allowed$", text, re.MULTILINE))
    if not found:
        raise Failed(f"no result was looked at for being {wanted}", text)
    return f"{found} results {wanted}"


def shapes(context):
    def small():
        return f"{len(compared(run_asked(context, 'Small/GpuShapes*', limit=200)))} comparisons"
    yield attempt(context, "small shapes, by the same code", small)

    for shape in SHAPES:
        for mode in modes_of(shape):
            def run():
                if context.emulated:
                    raise Skipped("an emulated GPU would take hours; the same code ran small shapes")
                text = run_asked(context, f"DISABLED_Real/GpuShapes*/{shape}_{mode}")
                return (f"every error below {max(compared(text)):.2f} of what is allowed; {every_element(text, mode)}",
                        {"found": told(text)})
            yield attempt(context, f"{shape}, {mode}", run)


def timing(context):
    """Nothing else may run beside it: products are timed here, too."""
    def zeros():
        if context.emulated:
            raise Skipped("the emulation times nothing")
        run_asked(context, "DISABLED_GpuTiming.LeavesZeros")
        return "operands and workspace hold zeros when all is timed"
    yield attempt(context, "zero again after products were timed on values", zeros)

    def values():
        if context.emulated:
            raise Skipped("the emulation times nothing")
        text = run_asked(context, "DISABLED_GpuTiming.OnZerosAndOnValues")
        for line in text.splitlines():
            if line.startswith("product"):
                return line
        raise Failed("nothing was timed", text)
    yield attempt(context, "a product on zeros and on normal bf16 values", values)


PARTS = (
    Part("shapes", run=1, seconds=240, rows=shapes, opened=False),
    Part("timing", run=1, seconds=60, rows=timing, alone=True, opened=False),
)
