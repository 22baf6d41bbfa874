"""Every kernel on the GPU against the float64 reference, by a GoogleTest program."""
import concurrent.futures
import json
import re

import runner
from part import Part
from runner import Failed, attempt, execute

PROGRAM = "ft_gpu_conformance_test"
ALONE_AT_A_TIME = 4


def tests_of(context, *options):
    """Names of all tests that the options choose."""
    names, suite = [], ""
    for line in execute(context, [context.made.program(PROGRAM), *options, "--gtest_list_tests"]).splitlines():
        if re.match(r"\S+\.$", line):
            suite = line
        elif line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
    return names


def results_of(report):
    """Result of each test ("passed", "skipped", or what failed) that the report has."""
    found = {}
    for suite in json.loads(report.read_text() or "{}").get("testsuites", []):
        for test in suite["testsuite"]:
            failures = [failure["failure"] for failure in test.get("failures", [])]
            result = "skipped" if test.get("result") == "SKIPPED" else "passed"
            found[f"{suite['name']}.{test['name']}"] = "\n".join(failures) or result
    return found


def run_program(context, *options, launcher=(), limit=180.0, env=None):
    """Results by name, and what the program printed, or the Failed that it ended with."""
    report = context.file(".json")
    command = [*launcher, context.made.program(PROGRAM), f"--gtest_output=json:{report}", *options]
    try:
        said = execute(context, command, limit=limit, env=env)
    except Failed as error:
        said = error
    return results_of(report), said


def chosen(context, pattern):
    """GoogleTest's filter for the tests of a pattern, and what to say of those that are left out."""
    if not context.ops:
        return f"--gtest_filter={pattern}", ""
    return f"--gtest_filter={':'.join(f'{pattern}/{op}' for op in context.ops)}", f", of {', '.join(context.ops)} alone"


def in_mode(context, mode, pattern, *options):
    """All in one process; those that failed or that a crash left out each once more in their own: an error of one may spoil
    the device for all that follow."""
    suspects, (filtered, only) = [], chosen(context, pattern)

    def run():
        results, said = run_program(context, *options, filtered)
        skipped = [name for name, result in results.items() if result == "skipped"]
        if skipped:
            raise Failed(f"{len(skipped)} of {len(results)} were skipped: the test sees no device")
        if not isinstance(said, Failed):
            if not results:
                raise Failed("no test ran", said)
            return f"{len(results)} tests{only}"
        names = tests_of(context, *options, filtered)
        suspects.extend(name for name in names if results.get(name) != "passed")
        raise Failed(f"{len(suspects)} of {len(names)} failed or did not run ({said})", said.output)
    yield attempt(context, f"every kernel against the float64 reference, {mode}", run)

    def alone(name):
        def run():
            results, said = run_program(context, *options, f"--gtest_filter={name}", limit=60)
            if isinstance(said, Failed):
                lines = [line for line in results.get(name, str(said)).splitlines() if line.strip()]
                raise Failed(" ".join(lines[:4])[:300], said.output)
            return "passes when alone"
        what = f"{name.rpartition('/')[2]} {name.rpartition('.')[2].split('/')[0]}"
        return attempt(context, f"alone: {what}, {mode}", run)
    with concurrent.futures.ThreadPoolExecutor(ALONE_AT_A_TIME) as pool:
        yield from pool.map(alone, suspects)


def fast(context):
    """As users train. Algorithms are chosen by their timing then, so two runs need not have the same bits."""
    yield from in_mode(context, "fast", "*MatchesReference*", "--deterministic=off")


def deterministic(context):
    yield from in_mode(context, "deterministic", "*", "--deterministic=on")


PARTS = (
    Part("conformance", run=1, seconds=180, rows=fast, opened=False),
    Part("conformance-deterministic", run=1, seconds=180, rows=deterministic, opened=False),
)
