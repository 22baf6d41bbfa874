"""Every kernel on the GPU against the float64 reference, by a GoogleTest program."""
import concurrent.futures
import json
import re

import runner
from part import Part
from runner import Failed, attempt, execute

PROGRAM = "ft_gpu_conformance_test"
ALONE_AT_A_TIME = 4


def tests_of(program, context):
    """Names of all tests of a GoogleTest program."""
    names, suite = [], ""
    for line in execute(context, [program, "--gtest_list_tests"]).splitlines():
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


def conformance(context):
    """All in one process; those that failed or that a crash left out each once more in their own: an error of one may spoil
    the device for all that follow."""
    suspects = []

    def run():
        results, said = run_program(context)
        skipped = sum(result == "skipped" for result in results.values())
        if skipped:
            raise Failed(f"{skipped} of {len(results)} were skipped: the test sees no device")
        if not isinstance(said, Failed):
            return f"{len(results)} tests"
        names = tests_of(context.made.program(PROGRAM), context)
        suspects.extend(name for name in names if results.get(name) != "passed")
        raise Failed(f"{len(suspects)} of {len(names)} failed or did not run ({said})", said.output)
    yield attempt(context, "every kernel against the float64 reference", run)

    def alone(name):
        def run():
            results, said = run_program(context, f"--gtest_filter={name}", limit=60)
            if isinstance(said, Failed):
                lines = [line for line in results.get(name, str(said)).splitlines() if line.strip()]
                raise Failed(" ".join(lines[:4])[:300], said.output)
            return "passes when alone"
        return attempt(context, f"alone: {name.rpartition('/')[2]} {name.rpartition('.')[2].split('/')[0]}", run)
    with concurrent.futures.ThreadPoolExecutor(ALONE_AT_A_TIME) as pool:
        yield from pool.map(alone, suspects)


PARTS = (Part("conformance", run=1, seconds=200, rows=conformance, opened=False),)
