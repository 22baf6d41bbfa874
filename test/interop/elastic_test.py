"""torchrun's own restarts, with fewer nodes and with more, of a run that goes on by itself (--resume=auto)."""
import os
import random
import re
import signal
import subprocess
import sys
import unittest

import support

SEQ, SEQUENCES, RANKS = 16, 1600, 2  # ranks of a node
# The store of the rendezvous in a process of its own, so that any of the agents can be lost.
STORE = """
import sys, torch.distributed
store = torch.distributed.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=True, wait_for_workers=False)
print("serves", flush=True)
sys.stdin.read()
"""


class ElasticTest(support.InteropTest):
    def setUp(self):
        super().setUp()
        model, self.plan = self.folder / "model.mlir", self.folder / "plan.bin"
        subprocess.run([support.BIN / "ftc", "model", "llama", "--layers=2", "--hidden=16", "--heads=2", "--kv-heads=2", "--ffn=32",
                        f"--seq={SEQ}", "--batch=1", "-o", model], check=True)
        subprocess.run([support.BIN / "ftc", "compile", model, "--strategy=full_shard", "-o", self.plan], check=True)
        self.metrics, self.checkpoints = self.folder / "metrics.jsonl", self.folder / "checkpoints"
        self.data, self.weights = self.folder / "data.txt", self.folder / "weights.safetensors"
        draw, text = random.Random(12), bytearray()
        for _ in range(SEQUENCES):
            letters = [draw.randrange(32, 127) for _ in range(draw.randrange(1, 5))]
            text += bytes(draw.choice(letters) for _ in range(SEQ))
        self.data.write_bytes(bytes(text) + b".")
        self.port = support.free_port()
        store = subprocess.Popen([sys.executable, "-c", STORE, str(self.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(store.wait)
        self.addCleanup(store.stdout.close)
        self.addCleanup(store.stdin.close)
        self.assertEqual(store.stdout.readline(), b"serves\n")

    def command(self, *options):
        return [support.BIN / "ftexec", self.plan, f"--data={self.data}", "--shuffle=off", "--threads=1", "--progress=off", *options]

    def alone(self, *options):
        """One rank, without a launcher."""
        subprocess.run(self.command(*options), check=True, env=support.environment(), stdout=subprocess.DEVNULL)

    def losses_of_sequences(self):
        """By position; of weights with which they lie far apart."""
        out = self.folder / "known.jsonl"
        self.alone("--steps=60", "--lr=0.02", f"--save-weights={self.weights}")
        self.alone("--lr=0", f"--init={self.weights}", f"--metrics={out}")
        return [line["loss"] for line in support.metrics_of(out)]

    def node(self, name):
        """An agent with two ranks."""
        options = ["--nnodes=1:2", f"--nproc-per-node={RANKS}", "--max-restarts=5", "--monitor-interval=0.3", "--rdzv-backend=c10d",
                   f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-id=elastic", "--local-addr=127.0.0.1",
                   "--rdzv-conf=is_host=0,last_call_timeout=2,keep_alive_interval=1"]
        return self.start(name, options, self.command_of_ranks())

    def command_of_ranks(self):
        """Steps are as long as the link sleeps; the run goes through the data once, and learns nothing."""
        return self.command("--lr=0", f"--init={self.weights}", f"--metrics={self.metrics}", f"--checkpoint-dir={self.checkpoints}",
                            "--save-every=10", "--keep=3", "--resume=auto", "--emulate-link=1000,15000")

    def lose(self, node):
        """SIGKILL to the agent and its ranks, as when a machine is gone; once there is a checkpoint, which a slow disk delays."""
        support.wait_for(lambda: list(self.checkpoints.glob("step-*/manifest.json")), 60, "a checkpoint")
        workers = node.workers()
        for pid in (node.process.pid, *workers.values()):
            os.kill(pid, signal.SIGKILL)
        node.process.wait()
        self.assertEqual(len(workers), RANKS)

    def steps(self):
        return len(support.metrics_of(self.metrics))

    def worlds(self):
        """How many ranks took each of the steps, one batch of one sequence each."""
        return [round(line["samples_per_s"] * line["step_ms"] / 1e3) for line in support.metrics_of(self.metrics)]

    def wait_for_steps_of(self, ranks, most=60):
        support.wait_for(lambda: self.worlds()[-12:] == [ranks] * 12, most, f"steps of {ranks} ranks")

    def assert_every_sequence_once(self, known):
        """As far as the run came. Returns how many it took."""
        self.assertEqual(len(known), SEQUENCES)
        lines, at = support.metrics_of(self.metrics), 0
        self.assertEqual([line["step"] for line in lines], list(range(len(lines))))
        for line, world in zip(lines, self.worlds()):
            taken = [known[i % SEQUENCES] for i in range(at, at + world)]  # the last batch may begin anew
            self.assertAlmostEqual(line["loss"], sum(taken) / world, delta=1e-5 * line["loss"], msg=f"step {line['step']}, {at}")
            at += world
        return at

    def test_a_node_is_lost_and_comes_back(self):
        # As docs/launch says: torchrun 2.15 never tells a node that joins a run under way where its own store is, and both wait.
        os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        self.addCleanup(os.environ.pop, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE")
        known = self.losses_of_sequences()
        nodes = [self.node("first"), self.node("second")]
        self.wait_for_steps_of(2 * RANKS)
        self.lose(nodes[1])
        before = self.steps()
        self.wait_for_steps_of(RANKS)
        text = nodes[0].text()
        resumed = [int(steps) for steps in re.findall(r"resumed from '[^']*' after (\d+) step", text)]
        self.assertEqual(len(resumed), 1, text)
        self.assertGreaterEqual(resumed[0], before - 30, "a newer checkpoint was there")
        self.assertRegex(text, r"ftexec: rank [01]: rank [0-3] was lost")
        self.assertRegex(text, rf"not as it was: .*ranks {RANKS} \(was {2 * RANKS}\)")

        nodes.append(self.node("third"))
        self.wait_for_steps_of(2 * RANKS)
        text = "".join(node.text() for node in nodes)
        # torchrun ends the ranks with SIGTERM for that: they have saved, and not a step is lost.
        self.assertRegex(text, rf"not as it was: .*ranks {2 * RANKS} \(was {RANKS}\)")
        self.assert_success(nodes[0], nodes[2])
        self.assertIn(self.assert_every_sequence_once(known), range(SEQUENCES, SEQUENCES + 2 * RANKS))
        changes = [a for a, b in zip(self.worlds(), self.worlds()[1:] + [0]) if a != b]
        self.assertEqual(changes, [2 * RANKS, RANKS, 2 * RANKS])

    def newest(self):
        return max(int(path.parent.name.removeprefix("step-")) for path in self.checkpoints.glob("step-*/manifest.json"))

    def test_the_node_of_rank_0_is_lost(self):
        """And then torchrun is told to end, which the ranks get as SIGTERM: they save, and the other one takes no step again."""
        known = self.losses_of_sequences()
        nodes = {name: self.node(name) for name in ("first", "second")}
        self.wait_for_steps_of(2 * RANKS)
        lost = next(name for name, node in nodes.items() if 0 in node.workers())
        self.lose(nodes.pop(lost))
        (node,) = nodes.values()
        self.wait_for_steps_of(RANKS)
        self.assertEqual(sorted(node.workers()), list(range(RANKS)))
        node.process.send_signal(signal.SIGTERM)
        node.wait(60)
        self.assertEqual(self.newest(), self.steps())
        self.assertLess(self.assert_every_sequence_once(known), SEQUENCES)
        worlds = self.worlds()
        self.assertEqual(worlds, sorted(worlds, reverse=True))

    def test_signals_to_one_rank(self):
        """Of one node without restarts: SIGUSR1 and SIGTERM end all ranks after a save, a lost rank ends them without."""
        self.losses_of_sequences()
        options = ["--standalone", f"--nproc-per-node={RANKS}"]
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                before = self.steps()
                agent = self.start(f"agent{number}", options, self.command_of_ranks())
                support.wait_for(lambda: self.steps() > before + 12, 60, "twelve steps")
                os.kill(agent.workers()[1], number)
                self.assertEqual(agent.wait(60), 1)
                self.assertEqual(agent.workers(), {})
                if number == signal.SIGKILL:
                    self.assertEqual(self.newest() % 10, 0, "only those that were due are there")
                    self.assertRegex(agent.text(), "ftexec: rank 0: rank 1 was lost")
                else:
                    self.assertEqual(self.newest(), self.steps())
                    self.assertRegex(agent.text(), r"exitcode *: 143")


if __name__ == "__main__":
    unittest.main()
