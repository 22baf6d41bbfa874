"""tools/gpu/check itself: on emulated GPUs what must pass passes; with programs that hang, crash or lie, that is said, the rest
goes on, nothing is left running, and the file tells all of it."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import harness

EMULATED = pathlib.Path(os.environ["FT_EMULATED"])
SCRIPTS = harness.SOURCE / "tools" / "gpu"
sys.path.insert(0, str(SCRIPTS))
import artifacts
import every_part
import machine
import models
import opening
import sanitizer
import standing

# Does as ftexec, ftrun and the conformance test do, as far as the scripts see. $FAKE says what goes wrong: WORD:WHERE,...
# where WHERE is part of the command line, or parts joined by &.
FAKE = '''#!{python} -B
import json, os, pathlib, subprocess, sys, time
line = " ".join(sys.argv)
for word, _, where in (entry.partition(":") for entry in os.environ.get("FAKE", "").split(",")):
    if word and all(part in line for part in where.split("&")) != (word == "unless" and "--device=cuda" in line):
        if word == "hang":
            subprocess.Popen(["sleep", "987"], preexec_fn=lambda: os.setpgid(0, 0))
            if "session" in os.environ.get("FAKE", ""):
                subprocess.Popen(["sleep", "988"], start_new_session=True)
            time.sleep(987)
        if word == "crash":
            os.abort()
        if word == "refuse" or word == "unless":
            print("ftexec: cannot do it", file=sys.stderr)
            sys.exit(74)
name, rest = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
options = dict(word[2:].partition("=")[::2] for word in rest if word.startswith("--"))
if name == "ftrun":
    while rest[0].startswith("--"):
        rest.pop(0)
    sys.exit(subprocess.run(rest).returncode)
if name == "ft_gpu_conformance_test":
    tests = ["MatchesReference/add", "MatchesReference/matmul"]
    assert options.get("deterministic", "on") in ("on", "off")
    if "gtest_list_tests" in options:
        print("EveryOp/Gpu.")
        print(*(f"  {{test}}  # GetParam()" for test in tests), sep="\\n")
        sys.exit()
    chosen = options.get("gtest_filter", "*")
    wrong = [t for t in tests if ("*" in chosen or chosen.endswith(t)) and "wrong:" + t in os.environ.get("FAKE", "")]
    if "gtest_output" in options:
        suite = [dict(name=t, result="COMPLETED", failures=[dict(failure="differs")] if t in wrong else []) for t in tests]
        report = dict(tests=2, testsuites=[dict(name="EveryOp/Gpu", testsuite=suite)])
        pathlib.Path(options["gtest_output"][5:]).write_text(json.dumps(report))
    print("  dq: 0.50 of what is allowed", "product: 1 ms on zeros", sep="\\n")
    print(*(f"  dq, finite{{bits}}: 0.00 of what is allowed" for bits in ("", " and the same bits twice")), sep="\\n")
    print(*(f"[       OK ] {{test}}" for test in tests if test not in wrong), sep="\\n")
    sys.exit(bool(wrong))
steps = int(options["steps"])
loss = 2.0 if "lie" in os.environ.get("FAKE", "") and options["device"] == "cuda" else 1.0
if "bf16" in line:  # a little away from fp32, on the CPU a little more
    loss += 2e-3 if options["device"] == "cpu" else 1e-3
row = dict(loss=loss, grad_norm=1.0, arena_bytes=1000, step_ms=1.0)
if steps == 1000000:  # a rank that works until its peer is lost
    metrics = pathlib.Path(options["metrics"])
    mark = metrics.with_suffix(".rank1")
    if os.environ["RANK"] == "1":
        mark.with_suffix(".part").write_text(str(os.getpid()))
        mark.with_suffix(".part").rename(mark)
        time.sleep(987)
    while not mark.exists():
        time.sleep(0.05)
    metrics.write_text((json.dumps(row) + "\\n") * 10)
    while True:
        time.sleep(0.05)
        try:
            state = pathlib.Path(f"/proc/{{mark.read_text()}}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            state = "X"
        if state in "TXZ":
            print("ftexec: rank 0: rank 1 was lost", file=sys.stderr)
            sys.exit(75)
if "metrics" in options:
    rows = [dict(row, skipped=step == 0) for step in range(steps)]
    pathlib.Path(options["metrics"]).write_text("".join(json.dumps(row) + "\\n" for row in rows))
if "trace" in options:
    tracks = [dict(name="thread_name", ph="M", args=dict(name=name)) for name in ("compute", "h2d", "d2h")]
    pathlib.Path(options["trace"]).write_text(json.dumps(dict(traceEvents=tracks)))
print("device memory in use: 2000 bytes, 1000 of them the arena")
'''
# Without those of the driver and its libraries alone, of which there are no fakes here (gpu_opening_test.py has some).
PARTS = ",".join(part.name for part in every_part.PARTS if part.name != "libraries")
# As a Python with PyTorch answers; $WORKER is what its torch_worker.py does, with $out to write to.
PYTHON = '''#!/bin/sh
for word in "$@"; do case "$word" in --out=*) out="${word#--out=}" ;; esac; done
case "$*" in
  *"import json, torch"*) echo '{"version": "2.11.0", "cuda": "13.0", "cudnn": 91900, "gpus": 1}' ;;
  *torch_worker.py*) eval "$WORKER" ;;
esac
'''
# Runs the program, and reports what $FINDS says of the kernels with hazards.
SANITIZER = """#!/bin/sh
while :; do case "$1" in --log-file=*) log="${1#--log-file=}" ;; --*) ;; *) break ;; esac; shift; done
"$@" || exit 1
[ -z "$FINDS" ] && exit 0
printf "%b" "$FINDS" > "$log"
exit 99
"""
RACE = "========= Error: Race reported between Read access at {0}+0xb20\\n=========     and Write access at {0}+0x2f50 [48 hazards]\\n"
OUT_OF_MEMORY = "echo 'OutOfMemoryError: CUDA out of memory' >&2; exit 1"
TRAINED = json.dumps({"torch": "2.11.0", "keep": "everything", "seconds": [9.0] * 4 + [0.002] * 8, "losses": [1.0],
                      "parameters": 1, "allocated_bytes": 1500, "reserved_bytes": 1600, "device_bytes": 2500})


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ft-check-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.json = self.dir / "out.json"

    def program(self, path, text):
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def bundle(self):
        """A folder as --make-bundle writes it, but for what the programs do."""
        folder = self.dir / "bundle"
        folder.mkdir()
        for script in (SCRIPTS / "check", *SCRIPTS.glob("*.py")):
            shutil.copy(script, folder)
        for name in ("ftexec", "ftrun", "ft_gpu_conformance_test"):
            self.program(folder / name, FAKE.format(python=sys.executable))
        (folder / "plans.json").write_text(json.dumps({name: 1000 for name in artifacts.plans_of(every_part.PARTS)}))
        (folder / "text.txt").write_text("text")
        return folder

    def command(self, folder, *options, python="/bin/false"):
        return [folder / "check", f"--parts={PARTS}", f"--json={self.json}", f"--python={python}", *options]

    def check(self, folder, *options, fake="", worker="", status=0, env=None, **kwargs):
        done = subprocess.run(self.command(folder, f"--ftexec={folder / 'ftexec'}", *options, **kwargs), capture_output=True,
                              text=True, env={**os.environ, "FAKE": fake, "WORKER": worker, **(env or {})}, timeout=240, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        report = json.loads(self.json.read_text())
        self.assertTrue(report["finished"])
        return report["rows"], done.stdout

    def one(self, rows, part, word):
        """The first of them: a benchmark of ours runs twice."""
        found = [row for row in rows if row["part"] == part and word in row["what"]]
        self.assertTrue(found, rows)
        return found[0]

    def test_passes_and_says_what_is_not_there(self):
        rows, text = self.check(self.bundle())
        self.assertEqual({row["result"] for row in rows}, {"passed", "skipped"})
        self.assertIn("no PyTorch", self.one(rows, "peers", "PyTorch")["detail"])
        self.assertIn("PATH", self.one(rows, "memcheck", "memcheck")["detail"])
        for name in artifacts.WORKLOADS:
            figures = self.one(rows, "standing", name)["figures"]["ft"]
            self.assertEqual((figures["arena_bytes"], figures["announced_bytes"], figures["device_bytes"]), (1000, 1000, 2000))
            self.assertIn(f"{name}: torch.compile was not measured", text)

    def test_races_in_libraries_are_no_races_in_ours(self):
        folder = self.bundle()
        self.program(self.dir / "compute-sanitizer", SANITIZER)

        def rows(finds, status):
            env = {"PATH": f"{self.dir}:{os.environ['PATH']}", "FINDS": "".join(RACE.format(name) for name in finds)}
            found, _ = self.check(folder, "--parts=racecheck", status=status, env=env)
            return [row for row in found if row["part"] == "racecheck"]
        theirs = "nvjet_sm90_tst_64x8_64x16_1x4_h_bx_splitK_NNT"
        for finds, said in (((), "no race"), ((theirs,), "no race in our kernels; reported of nvjet")):
            found = rows(finds, 0)
            self.assertEqual(len(found), sanitizer.SHARDS + len(sanitizer.GENERATED_OF))
            self.assertTrue(all(row["result"] == "passed" and said in row["detail"] for row in found), found)
        for ours in ("void ft::cuda::(anonymous namespace)::MapKernel<8>(Args)", "kernel", "combine"):
            found = rows((theirs, ours), 1)
            self.assertEqual({(row["result"], row["detail"]) for row in found}, {("FAILED", f"races in {ours}")})

    def test_a_sanitizer_that_fails_proves_nothing(self):
        self.program(self.dir / "compute-sanitizer", SANITIZER)
        env = {"PATH": f"{self.dir}:{os.environ['PATH']}", "FINDS": "========= Internal Sanitizer Error: it failed"}
        found, _ = self.check(self.bundle(), "--parts=memcheck,racecheck", env=env)
        self.assertEqual({row["result"] for row in found if row["part"] in ("memcheck", "racecheck")}, {"skipped"})

    def test_rounds_are_played_in_turn(self):
        python = self.program(self.dir / "python", PYTHON)
        rows, text = self.check(self.bundle(), "--parts=models,peers,rounds", python=python,
                                worker=f"echo '{TRAINED}' > $out")
        for name in artifacts.WORKLOADS:
            row = self.one(rows, "rounds", name)
            self.assertEqual((row["result"], len(row["rounds"])), ("passed", 3), row)
            self.assertEqual(self.one(rows, "standing", name)["ratio"], row["ratio"])

    def test_what_hangs_is_stopped_with_all_it_started(self):
        begin = time.monotonic()
        rows, _ = self.check(self.bundle(), "--seconds=80", "--parts=conformance,presets,models", status=3,
                             fake="hang:conformance,hang:llama-bf16")
        self.assertLess(time.monotonic() - begin, 80)
        self.assertEqual(self.one(rows, "conformance", "every kernel")["result"], "no time")
        self.assertEqual(self.one(rows, "presets", "llama fp32")["result"], "passed")
        self.assertEqual(self.one(rows, "models", "gpt2-124m: ft")["result"], "passed")
        self.assertNotIn("sleep 987", harness.command_lines())

    def test_what_crashes_ends_nothing_else(self):
        rows, text = self.check(self.bundle(), "--parts=conformance,strategies,models", status=1,
                                fake="crash:gpt2-fp32-no_shard,crash:bench-gpt2-1.5b,wrong:MatchesReference/matmul")
        self.assertIn("SIGABRT", self.one(rows, "strategies", "no_shard fp32")["detail"])
        self.assertEqual(self.one(rows, "strategies", "full_shard bf16")["result"], "passed")
        self.assertIn("1 of 2 failed", self.one(rows, "conformance", "every kernel")["detail"])
        self.assertEqual(self.one(rows, "conformance", "alone: matmul MatchesReference")["detail"], "differs")
        self.assertEqual(self.one(rows, "models", "qwen2.5-1.5b: ft")["result"], "passed")
        self.assertIn("FAILED models: gpt2-1.5b: ft", text)

    def test_conformance_that_crashes_is_repeated_test_by_test(self):
        rows, _ = self.check(self.bundle(), "--parts=conformance", fake="crash:gtest_output=json", status=1)
        self.assertEqual(sum(row["what"].startswith("alone") for row in rows), 2)

    def test_wrong_numbers_fail(self):
        rows, _ = self.check(self.bundle(), "--parts=presets,ranks", fake="lie", status=1)
        self.assertIn("1e-4", self.one(rows, "presets", "gpt2 fp32")["detail"])
        self.assertEqual(self.one(rows, "presets", "gpt2 bf16")["result"], "FAILED")
        self.assertEqual(self.one(rows, "ranks", "against the CPU")["result"], "FAILED")

    def test_what_helps_at_the_opening_is_used_by_all(self):
        rows, _ = self.check(self.bundle(), "--parts=conformance,memory,levers", status=1,
                             fake="unless:--attention=own")
        self.assertEqual(self.one(rows, "opening", "ftexec opens")["result"], "FAILED")
        self.assertEqual(self.one(rows, "opening", "bf16 --cuda-graph=off")["result"], "FAILED")
        self.assertEqual(self.one(rows, "opening", "bf16 --attention=own")["options"], ["--attention=own"])
        self.assertEqual({row["result"] for row in rows if row["part"] in ("conformance", "memory", "levers")}, {"passed"})

    def test_a_gpu_that_ftexec_cannot_open_still_gets_its_conformance_run(self):
        rows, _ = self.check(self.bundle(), fake="refuse:--device=cuda", status=1)
        opened = [row for row in rows if row["part"] == "opening"]
        self.assertEqual({row["result"] for row in opened}, {"FAILED"})
        self.assertEqual(len(opened), 1 + len(opening.WAYS))
        self.assertEqual(opened[0]["detail"], "status 74: ftexec: cannot do it")
        self.assertEqual(self.one(rows, "conformance", "every kernel")["result"], "passed")
        self.assertEqual(self.one(rows, "shapes", "attention_64x1024x12x64, fast")["result"], "passed")
        self.assertEqual(self.one(rows, "models", "all of it")["result"], "not tried")

    def test_less_memory_takes_the_next_plan(self):
        rows, _ = self.check(self.bundle(), "--parts=models", fake="refuse:qwen2.5-1.5b-none")
        figures = {row["what"]: row["figures"]["ft"]["keep"] for row in rows if "figures" in row}
        self.assertEqual(figures["qwen2.5-1.5b"], f"recomputation {artifacts.RECOMPUTATIONS[1]}")
        self.assertEqual(figures["gpt2-124m"], "recomputation none")

    def test_a_peer_in_trouble_is_no_failure(self):
        python = self.program(self.dir / "python", PYTHON)
        rows, _ = self.check(self.bundle(), "--parts=models,peers", python=python, worker=OUT_OF_MEMORY)
        self.assertIn("out of memory", self.one(rows, "peers", "gpt2-124m: blocks")["detail"])
        self.assertEqual({row["result"] for row in rows if row["part"] == "standing"}, {"skipped"})

    def test_the_table_names_the_ratio_and_both_memories(self):
        python = self.program(self.dir / "python", PYTHON)
        rows, text = self.check(self.bundle(), "--parts=models,peers", python=python, worker=f"echo '{TRAINED}' >$out")
        summaries = [row for row in rows if row["part"] == "standing"]
        self.assertEqual([(row["result"], row["ratio"]) for row in summaries], [("passed", 2.0)] * len(artifacts.WORKLOADS))
        self.assertEqual(set(summaries[0]["figures"]), {"ft", "eager", "blocks", "compile"})
        self.assertGreaterEqual(summaries[0]["figures"]["ft"]["steps_timed"], 2 * 60)  # of 0.07 s on the fastest that we expect
        self.assertIn("gpt2-124m: 2.000 x torch.compile", text)
        self.assertEqual(text.count("reserved"), 3 * len(artifacts.WORKLOADS))

    def test_judges(self):
        found = standing.Standing("gpt2-124m", {"name": "NVIDIA H200", "bytes": 1})
        step = found.tokens / 600e3
        found.add("ft", {"seconds": [step], "arena_bytes": 10, "announced_bytes": 10})
        found.add("compile", {"seconds": [1.2 * step], "allocated_bytes": 11, "keep": "everything"})
        self.assertEqual(list(found.shortcomings()), [])
        found.add("blocks", {"seconds": [1.05 * step], "allocated_bytes": 10, "keep": "everything"})
        found.figures["ft"].update(announced_bytes=9, tokens_per_s=540e3)
        self.assertEqual(len(list(found.shortcomings())), 4)

    def hanging(self, fake, line, **kwargs):
        """A check of which a program hangs that has started another one, with this command line."""
        folder = self.bundle()
        running = subprocess.Popen([str(word) for word in self.command(folder, f"--ftexec={folder / 'ftexec'}")],
                                   env={**os.environ, "FAKE": fake}, stdout=subprocess.DEVNULL, **kwargs)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        while line not in harness.command_lines():
            self.assertIsNone(running.poll())
            time.sleep(0.1)
        return running

    def test_killed_it_leaves_nothing_running(self):
        """Nor what has put itself into a session of its own; and the guard goes, too. The group of the check is killed, as by a shell."""
        running = self.hanging("hang:conformance,session", "sleep 988", stderr=subprocess.DEVNULL, start_new_session=True)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        end = time.monotonic() + 20
        while left := [line for line in harness.command_lines() if line in ("sleep 987", "sleep 988") or str(self.dir) in line]:
            self.assertLess(time.monotonic(), end, left)
            time.sleep(0.1)

    def test_ended_from_outside_it_leaves_nothing_running(self):
        running = self.hanging("hang:conformance", "sleep 987", stderr=subprocess.PIPE, text=True)
        running.send_signal(signal.SIGTERM)
        self.assertIn("SIGTERM", running.communicate(timeout=60)[1])
        self.assertNotIn("sleep 987", harness.command_lines())
        report = json.loads(self.json.read_text())
        self.assertFalse(report["finished"])
        self.assertEqual(report["rows"][0]["result"], "passed")

    def test_trouble_is_one_line(self):
        folder = self.bundle()
        for options, status in ((("--json=/nowhere/out.json", f"--ftexec={EMULATED}"), 74), ((), 65), (("--parts=nothing",), 2)):
            if status == 65 and machine.ask_driver()["gpus"]:
                continue
            done = subprocess.run([str(word) for word in self.command(folder, *options)], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("check: ", done.stderr.strip().splitlines()[-1])

    def test_libraries_beside_pytorch(self):
        """The environment of its Python is the active one for our programs, and no launcher reaches them."""
        python = self.program(self.dir / "python", f"#!/bin/sh\necho {self.dir}\n")
        with unittest.mock.patch.dict(os.environ, {"RANK": "1", "VIRTUAL_ENV": "/elsewhere"}):
            self.assertEqual(machine.environment(str(python))["VIRTUAL_ENV"], str(self.dir))
            self.assertNotIn("RANK", machine.environment(str(python)))
            self.assertEqual(machine.environment()["VIRTUAL_ENV"], "/elsewhere")
            self.assertEqual(machine.environment("/none")["VIRTUAL_ENV"], "/elsewhere")


if __name__ == "__main__":
    unittest.main()
