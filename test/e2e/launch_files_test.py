"""What docs/launch holds: scripts and manifests, checked against `ftexec --help`, and that they fit together."""

import re
import shlex
import unittest

from harness import BIN, EndToEnd, environment, run
from lost_rank_test import free_port
from meeting import LAUNCH

try:
    import yaml
except ImportError:
    yaml = None


def flags_of(command):
    """The options of ftexec in a command line, without those of what starts it."""
    words = shlex.split(command)
    return {word.split("=")[0] for word in words[words.index("ftexec") + 1:] if word.startswith("--")}


class Files(EndToEnd):
    MANIFESTS = {"pytorchjob.yaml": ["PyTorchJob"], "jobset.yaml": ["JobSet"], "indexed-job.yaml": ["Service", "Job"]}

    def assert_known(self, flags, where):
        words = set(re.findall(r"--[a-z-]+", self.check("ftexec", "--help").stdout))
        self.assertEqual(sorted(flags - words), [], where)
        self.assertGreaterEqual(len(flags), 4, where)  # it was read at all

    def test_scripts(self):
        for name in ("slurm.sbatch", "openmpi.sh"):
            with self.subTest(file=name):
                text = (LAUNCH / name).read_text()
                self.check("bash", "-n", LAUNCH / name)
                commands = re.findall(r"^ +ftexec (?:.*\\\n)*.*", text, re.M)
                self.assertEqual(len(commands), 1)
                self.assert_known(flags_of(commands[0].replace("\\\n", " ").split("||")[0]), name)

    @unittest.skipIf(yaml is None, "skipped: no PyYAML")
    def test_manifests(self):
        self.assertEqual({path.name for path in LAUNCH.glob("*.yaml")}, set(self.MANIFESTS))
        for name, kinds in self.MANIFESTS.items():
            with self.subTest(file=name):
                documents = list(yaml.safe_load_all((LAUNCH / name).read_text()))
                self.assertEqual([document["kind"] for document in documents], kinds)
                spec = documents[-1]["spec"]
                if name == "pytorchjob.yaml":
                    pods = [spec["pytorchReplicaSpecs"][role]["template"]["spec"] for role in ("Master", "Worker")]
                else:
                    job = spec["replicatedJobs"][0]["template"]["spec"] if name == "jobset.yaml" else spec
                    pods = [job["template"]["spec"]]
                    self.check_ranks(job, pods[0]["containers"][0], documents, name)
                for pod in pods:
                    container = pod["containers"][0]
                    self.assertEqual(container["command"], ["ftexec"])
                    self.assertTrue(all(isinstance(word, str) for word in container["args"]))
                    self.assert_known(flags_of(shlex.join(["ftexec", *container["args"]])), name)
                    grace = next(int(word.split("=")[1]) for word in container["args"] if word.startswith("--grace="))
                    self.assertGreater(pod["terminationGracePeriodSeconds"], grace)
                    self.assertEqual(pod["volumes"][0]["name"], container["volumeMounts"][0]["name"])
                self.assertEqual(len({str(pod) for pod in pods}), 1, "the templates differ")

    def check_ranks(self, job, container, documents, name):
        """One number of ranks, and an address that is pod 0's name."""
        env = {variable["name"]: variable["value"] for variable in container["env"]}
        self.assertTrue(all(isinstance(value, str) for value in env.values()))
        self.assertEqual({str(job["parallelism"]), str(job["completions"])}, {env["WORLD_SIZE"]})
        self.assertEqual(job["completionMode"], "Indexed")
        title = documents[-1]["metadata"]["name"]
        if name == "jobset.yaml":
            group = documents[-1]["spec"]["replicatedJobs"][0]
            self.assertEqual((group["replicas"], env["MASTER_ADDR"]), (1, f"{title}-{group['name']}-0-0.{title}"))
        else:
            service = documents[0]
            self.assertEqual(env["MASTER_ADDR"], f"{title}-0.{service['metadata']['name']}")
            self.assertEqual(job["template"]["spec"]["subdomain"], service["metadata"]["name"])
            self.assertEqual(service["spec"]["selector"], {"job-name": title})

    @unittest.skipIf(yaml is None, "skipped: no PyYAML")
    def test_the_environment_of_an_indexed_job_is_enough(self):
        """What the manifest and Kubernetes set, with a name that this host can find: the ranks of another world are missed by name."""
        documents = list(yaml.safe_load_all((LAUNCH / "indexed-job.yaml").read_text()))
        container = documents[-1]["spec"]["template"]["spec"]["containers"][0]
        env = {variable["name"]: variable["value"] for variable in container["env"]}
        env |= dict(MASTER_ADDR="localhost", MASTER_PORT=free_port(), JOB_COMPLETION_INDEX=0)
        done = run(BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", "--steps=1", "--timeout=2", "--progress=off",
                   env=environment(**env))
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn(f"ranks 1, 2, 3 of {env['WORLD_SIZE']} did not arrive", done.stderr)


if __name__ == "__main__":
    unittest.main()
