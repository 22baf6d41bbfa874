"""ftexec under the torchrun of current PyTorch: one agent, a standalone one, two agents; failures."""
import os
import re
import signal
import unittest

import numpy as np

import support  # before what it makes findable
import reference


def golden_losses(world, steps):
    """GPT-2 debug on the golden weights, computed by PyTorch now."""
    tokens = np.frombuffer(support.CORPUS.read_bytes(), dtype=np.uint8)
    model = reference.load(reference.debug_model("gpt2"), "gpt2")
    return reference.train(model, tokens, support.SEQ, support.BATCH, world, steps, support.LR)


class TorchrunTest(support.InteropTest):
    STEPS = 5

    def setUp(self):
        super().setUp()
        self.plan = support.compile_plan(self.folder, "gpt2", "full_shard")
        self.metrics = self.folder / "metrics.jsonl"
        weights = reference.weights
        self.init = self.folder / "init.safetensors"
        weights.write_safetensors(str(self.init), {name: (shape, weights.values("gpt2", name, shape))
                                                   for name, shape in weights.SHAPES["gpt2"].items()})

    def command(self, steps=STEPS, **options):
        return support.ftexec(self.plan, steps, f"--init={self.init}", f"--metrics={self.metrics}", **options)

    def assert_losses(self, world):
        lines = support.metrics_of(self.metrics)
        losses, norms = golden_losses(world, self.STEPS)
        self.assert_close([line["loss"] for line in lines], losses)
        self.assert_close([line["grad_norm"] for line in lines], norms)

    def two_agents(self, command, **rendezvous):
        port = support.free_port()
        if rendezvous.get("c10d"):
            common = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=interop",
                      "--local-addr=127.0.0.1"]
        else:
            common = ["--master-addr=127.0.0.1", f"--master-port={port}"]
        return [self.start(f"agent{node}", ["--nnodes=2", f"--node-rank={node}", "--nproc-per-node=1", *common], command)
                for node in (0, 1)]

    def test_one_agent_two_workers(self):
        options = ["--nproc-per-node=2", f"--master-port={support.free_port()}"]
        self.assert_success(self.start("agent", options, self.command()))
        self.assert_losses(world=2)

    def test_standalone(self):
        self.assert_success(self.start("agent", ["--standalone", "--nproc-per-node=2"], self.command()))
        self.assert_losses(world=2)

    def test_standalone_without_the_agents_store(self):
        os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # rank 0 has to serve the store itself
        self.addCleanup(os.environ.pop, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE")
        self.assert_success(self.start("agent", ["--standalone", "--nproc-per-node=2"], self.command()))
        self.assert_losses(world=2)

    def test_two_agents_static(self):
        self.assert_success(*self.two_agents(self.command()))
        self.assert_losses(world=2)

    def test_two_agents_c10d(self):
        self.assert_success(*self.two_agents(self.command(), c10d=True))
        self.assert_losses(world=2)

    def test_bad_input_is_reported_by_torchrun(self):
        options = ["--nproc-per-node=2", f"--master-port={support.free_port()}"]
        agent = self.start("agent", options, self.command(data=self.folder / "no-such-file"))
        self.assertEqual(agent.wait(), 1)
        self.assertRegex(agent.text(), r"exitcode *: 74 .*\n.*\n *traceback *: .*no-such-file")
        self.assertEqual(agent.workers(), {})

    def kill_rank_1(self, agents, world=2):
        """SIGKILL in mid-run; returns when every ftexec has ended, which must be within 5 s."""
        support.wait_for(lambda: len(support.metrics_of(self.metrics)) >= 3, 60, "three steps")
        workers = {rank: pid for agent in agents for rank, pid in agent.workers().items()}
        self.assertEqual(sorted(workers), list(range(world)))
        os.kill(workers[1], signal.SIGKILL)
        support.wait_for(lambda: not any(agent.workers() for agent in agents), 5, "all ranks end after one was killed")

    def test_killed_rank_is_named_by_every_survivor(self):
        # The agent looks at its workers every 3 s only: what ends the survivors is their own notice, not its SIGTERM.
        options = ["--nproc-per-node=3", "--monitor-interval=3", f"--master-port={support.free_port()}"]
        agent = self.start("agent", options, self.command(steps=1_000_000))
        self.kill_rank_1([agent], world=3)
        self.assertEqual(agent.wait(60), 1)
        text = agent.text()
        for survivor in (0, 2):
            self.assertRegex(text, rf"ftexec: rank {survivor}: rank 1 was lost")
        # torchrun's own summary: the killed rank, and our words from the error file for the others.
        self.assertRegex(text, r"rank *: 1 \(local_rank: 1\)\n *exitcode *: -9")
        self.assertEqual(len(re.findall(r"exitcode *: 75 .*\n.*\n *traceback *: .*rank 1 was lost", text)), 2, text[-4000:])

    def test_killed_rank_on_the_other_node_is_named(self):
        agents = self.two_agents(self.command(steps=1_000_000))
        self.kill_rank_1(agents)
        # Agent 0 has no failed worker of its own at first: what ends rank 0 is its own notice that rank 1 is gone.
        self.assertEqual([agent.wait(60) for agent in agents], [1, 1])
        self.assertRegex(agents[0].text(), r"ftexec: rank 0: rank 1 was lost")
        self.assertRegex(agents[0].text(), r"traceback *: .*rank 1 was lost")


if __name__ == "__main__":
    unittest.main()
