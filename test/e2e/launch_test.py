"""ftrun: environment, prefixes, several nodes on one host, restarts; ftexec on its own."""

import pathlib
import signal
import subprocess
import unittest

from harness import BIN, EndToEnd, children, environment, metrics
from lost_rank_test import free_port


class Launch(EndToEnd):
    def test_environment_of_the_ranks(self):
        done = self.check("ftrun", "--nproc-per-node=2", "--standalone", "/bin/sh", "-c",
                          'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $TORCHELASTIC_USE_AGENT_STORE"')
        self.assertEqual(sorted(done.stdout.split("\n"))[-2:], ["[rank 0] 0/2 0/2 0 True", "[rank 1] 1/2 1/2 0 True"])

    def test_status_of_a_failing_rank(self):
        done = subprocess.run([BIN / "ftrun", "--nproc-per-node=2", "--standalone", "/bin/sh", "-c", "exit $((RANK * 7))"],
                              env=environment(), capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("rank 1", done.stderr)

    def test_restarts(self):
        flag = self.dir / "flag"
        script = f'if [ -e {flag} ]; then echo count $TORCHELASTIC_RESTART_COUNT; else touch {flag}; exit 3; fi'
        done = self.check("ftrun", "--nproc-per-node=1", "--standalone", "--max-restarts=1", "/bin/sh", "-c", script)
        self.assertIn("count 1", done.stdout)

    def test_two_nodes_on_one_host(self):
        """The same world as four ranks of one node, hence the same bits."""
        plan, port = self.plan("llama", "full_shard"), free_port()
        expected = [(row["loss"], row["grad_norm"]) for row in self.train(plan, 4, steps=5)]
        out = self.dir / "two-nodes.jsonl"
        nodes = [subprocess.Popen([BIN / "ftrun", "--nnodes=2", f"--node-rank={node}", "--nproc-per-node=2",
                                   "--master-addr=127.0.0.1", f"--master-port={port}", BIN / "ftexec", plan,
                                   f"--data={self.text}", "--steps=5", f"--metrics={out}", "--progress=off"],
                                  env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for node in (0, 1)]
        for node in nodes:
            output, _ = node.communicate(timeout=60)
            self.assertEqual(node.returncode, 0, output)
        self.assertEqual([(row["loss"], row["grad_norm"]) for row in metrics(out)], expected)

    def test_ranks_agree_on_an_instruction_set(self):
        """Of ranks that may use different ones all use the plainest, and say so; the bits are those of a run with it alone."""
        plan = self.plan("gpt2", "full_shard")
        plain = self.train(plan, 2, "--instruction-set=generic", steps=3)
        out = self.dir / "mixed.jsonl"
        command = (f'[ $RANK = 1 ] && set -- --instruction-set=generic; exec {BIN / "ftexec"} {plan} --data={self.text} --steps=3 '
                   f'--metrics={out} --progress=off "$@"')
        done = self.check("ftrun", "--nproc-per-node=2", "--standalone", "/bin/sh", "-c", command)
        self.assertRegex(done.stdout, r"per rank, generic; ranks talk by")
        mixed = metrics(out)
        self.assertEqual([row.get("instruction_set") for row in mixed], ["generic", None, None])
        self.assertEqual([(row["loss"], row["grad_norm"]) for row in mixed], [(row["loss"], row["grad_norm"]) for row in plain])
        best = self.train(plan, 2, steps=1)[0]["instruction_set"]
        self.assertIn(f"|{best}" if best != "generic" else "auto|generic", self.check("ftexec", "--help").stdout)

    def test_more_ranks_than_cores(self):
        rows = self.train(self.plan("gpt2", "full_shard"), 8, steps=5)
        self.assertEqual(len(rows), 5)

    def test_a_signalled_launcher_leaves_no_child(self):
        process = subprocess.Popen([BIN / "ftrun", "--standalone", "--nproc-per-node=2", "sh", "-c", "echo up; sleep 60"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
        process.stdout.readline()
        started = children(process.pid)
        self.assertGreaterEqual(len(started), 2)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=10), -signal.SIGTERM)
        process.stdout.close()
        self.assertEqual([child for child in started if pathlib.Path(f"/proc/{child}").exists()], [])


if __name__ == "__main__":
    unittest.main()
