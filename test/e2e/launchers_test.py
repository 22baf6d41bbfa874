"""Two ranks meet with nothing but what their launcher sets: Slurm, Open MPI, MPICH and Kubernetes, faked everywhere and really
run where they are installed. What docs/launch holds is checked against `ftexec --help`, and its sbatch file is submitted."""

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
import unittest

from harness import BIN, SOURCE, EndToEnd, environment, metrics, run
from lost_rank_test import free_port

try:
    import yaml
except ImportError:
    yaml = None

LAUNCH = SOURCE / "docs/launch"

# Flags of docs/launch that ftexec is about to get. Each leaves this list when it is there.
ANNOUNCED = set()


def slurm_is_up():
    try:
        done = subprocess.run(["sinfo", "-h", "-t", "idle,mix", "-o", "%D"], capture_output=True, text=True, timeout=10)
        return done.returncode == 0 and sum(map(int, done.stdout.split())) > 1
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False


def slurm_step(rank, job, step=0, node_of=(0, 0), nodes="localhost", **more):
    """The variables of a task of srun -n2."""
    tasks = [node_of.count(node) for node in sorted(set(node_of))]
    return dict(SLURM_PROCID=rank, SLURM_LOCALID=node_of[:rank].count(node_of[rank]), SLURM_NODEID=node_of[rank], SLURM_JOB_ID=job,
                SLURM_STEP_ID=step, SLURM_NTASKS=2, SLURM_STEP_NUM_TASKS=2, SLURM_STEP_TASKS_PER_NODE=",".join(map(str, tasks)),
                SLURM_STEP_NODELIST=nodes, **more)


def open_mpi(rank, job):
    return dict(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=2, OMPI_COMM_WORLD_LOCAL_RANK=rank, OMPI_COMM_WORLD_LOCAL_SIZE=2,
                PMIX_NAMESPACE=job, PMIX_RANK=rank)


def hydra(rank):
    return dict(PMI_RANK=rank, PMI_SIZE=2, MPI_LOCALRANKID=rank, MPI_LOCALNRANKS=2)


def indexed_job(rank, port):
    return dict(JOB_COMPLETION_INDEX=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port)


def pytorch_job(rank, port):
    return dict(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port, PET_NPROC_PER_NODE="auto", PET_NODE_RANK=rank,
                PET_NNODES=2)


def flags_of(command):
    """The options of ftexec in a command line, without those of what starts it."""
    words = shlex.split(command)
    return {word.split("=")[0] for word in words[words.index("ftexec") + 1:] if word.startswith("--")}


class Meeting(EndToEnd):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "metrics.jsonl"

    def ftexec(self, out=None, steps=3):
        return [BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", f"--steps={steps}", "--threads=1", "--progress=off",
                f"--metrics={out or self.out}"]

    def curve(self, path):
        return [(row["loss"], row["grad_norm"]) for row in metrics(path)]

    def expected(self, world=2, steps=3):
        """What the same ranks compute under ftrun; `self.out` is left to whoever asks."""
        out = self.out.rename(self.dir / "met.jsonl") if self.out.exists() else None
        rows = self.train(self.plan("gpt2", "full_shard"), world, "--threads=1", steps=steps)
        if out is not None:
            out.rename(self.out)
        return [(row["loss"], row["grad_norm"]) for row in rows]

    def assert_met(self, path=None, world=2):
        self.assertEqual(self.curve(path or self.out), self.expected(world))


    def ftexec_of_docs(self, first=""):
        """A PATH with an ftexec that runs `first`, then ours on one thread for 3 steps, without what is only announced."""
        stub = self.dir / "bin/ftexec"
        stub.parent.mkdir()
        left_out = "|".join([flag + "=*" for flag in sorted(ANNOUNCED)] + ["--steps=*"])
        stub.write_text(f'#!/bin/bash\n{first}\nargs=()\nfor word; do case $word in {left_out}) ;; *) args+=("$word") ;; esac; done\n'
                        f'exec {BIN}/ftexec "${{args[@]}}" --steps=3 --threads=1 --progress=off\n')
        stub.chmod(0o755)
        return f"{stub.parent}:{os.environ['PATH']}"


class FakedLaunchers(Meeting):
    def start(self, env, command):
        return subprocess.Popen([str(word) for word in command], env=environment(**env), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, ranks):
        for rank in ranks:
            _, errors = rank.communicate(timeout=120)
            self.assertEqual(rank.returncode, 0, errors)

    def test_two_ranks_meet(self):
        job = os.getpid()
        worlds = {"a node of Slurm": [slurm_step(rank, job) for rank in (0, 1)],
                  "two nodes of Slurm": [slurm_step(rank, job, node_of=(0, 1), nodes="localhost,other") for rank in (0, 1)],
                  "mpirun": [open_mpi(rank, job) for rank in (0, 1)],
                  "mpiexec": [hydra(rank) | dict(MASTER_PORT=port) for port in [free_port()] for rank in (0, 1)],
                  "indexed Job": [indexed_job(rank, port) for port in [free_port()] for rank in (0, 1)],
                  "PyTorchJob": [pytorch_job(rank, port) for port in [free_port()] for rank in (0, 1)]}
        for name, world in worlds.items():
            with self.subTest(launcher=name):
                self.out.unlink(missing_ok=True)
                self.finish([self.start(env, self.ftexec()) for env in world])
                self.assert_met()

    def test_steps_of_one_job_side_by_side(self):
        outs = [self.dir / f"step{step}.jsonl" for step in (0, 1)]
        self.finish([self.start(slurm_step(rank, os.getpid(), step), self.ftexec(outs[step])) for rank in (1, 0) for step in (0, 1)])
        for out in outs:
            self.assert_met(out)

    def test_a_port_in_use_is_named(self):
        job = os.getpid()
        port = 20000 + 16 * job % 8000
        with socket.socket(socket.AF_INET6) as taken:
            taken.bind(("::", port))
            taken.listen()
            done = run(*self.ftexec(), env=environment(**slurm_step(0, job)))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        for word in (f"port {port}", "the port is in use", "MASTER_PORT", "srun"):
            self.assertIn(word, done.stderr)

    def test_a_host_that_is_none_is_named(self):
        done = run(*self.ftexec(), "--timeout=2", env=environment(**slurm_step(1, 7, node_of=(0, 1), nodes="no-such-host[1-2]")))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (75, 1), done.stderr)
        for word in ("no-such-host1:20112", "MASTER_ADDR", "srun"):
            self.assertIn(word, done.stderr)

    def test_nonsense_is_one_line(self):
        good = slurm_step(1, 7, node_of=(0, 1), nodes="n[0-1]")
        for bad, word in ((dict(SLURM_PROCID=2), "SLURM_PROCID='2'"), (dict(SLURM_STEP_NODELIST="n[0-"), "SLURM_STEP_NODELIST='n[0-'"),
                          (dict(SLURM_NTASKS=4), "contradicts"), (dict(SLURM_STEP_TASKS_PER_NODE="4(x2)"), "counts 8 tasks"),
                          (dict(OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=1), "contradict each other"),
                          (dict(SLURM_DISTRIBUTION="arbitrary"), "MASTER_ADDR"), (dict(WORLD_SIZE=4), "WORLD_SIZE='4'")):
            with self.subTest(bad=bad):
                done = run(*self.ftexec(), env=environment(**(good | bad)))
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
                self.assertIn(word, done.stderr)
                self.assertFalse(self.out.exists())


class Mpi(Meeting):
    ENVIRONMENT = dict(OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)

    def mpirun(self, launcher, *options):
        return self.check(launcher, *options, *self.ftexec(), env=environment(**self.ENVIRONMENT), timeout=120)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "skipped: no Open MPI")
    def test_open_mpi(self):
        self.mpirun("mpirun.openmpi", "-n", "2", "--oversubscribe")
        self.assert_met()
        self.mpirun("mpirun.openmpi", "-n", "1")
        self.assert_met(world=1)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "skipped: no Open MPI")
    def test_the_script_of_docs(self):
        env = environment(**self.ENVIRONMENT, RANKS=2, PATH=self.ftexec_of_docs(), OMPI_MCA_rmaps_base_oversubscribe="true")
        for hosts in ("", self.dir / "hosts"):
            with self.subTest(hosts=str(hosts)):
                if hosts:
                    hosts.write_text("# hosts\n\nlocalhost slots=2\n")
                self.check(LAUNCH / "openmpi.sh", hosts, self.plan("gpt2", "full_shard"), self.text, self.dir / "checkpoints", env=env,
                           timeout=120)
                self.assert_met(self.dir / "checkpoints.metrics.jsonl")

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "skipped: no MPICH")
    def test_mpich(self):
        self.mpirun("mpirun.mpich", "-n", "2")
        self.assert_met()

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "skipped: no MPICH")
    def test_two_mpiexecs_side_by_side(self):
        """They set nothing that tells their ranks apart."""
        outs = [self.dir / f"{name}.jsonl" for name in "ab"]
        jobs = [subprocess.Popen([str(word) for word in ("mpirun.mpich", "-n", "2", *self.ftexec(out))], env=environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for out in outs]
        for job, out in zip(jobs, outs):
            output, _ = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, output)
            self.assert_met(out)


@unittest.skipUnless(slurm_is_up(), "skipped: no Slurm with two idle nodes")
class Slurm(Meeting):
    def test_srun(self):
        self.check("srun", "-N2", "-n2", *self.ftexec(), timeout=120)
        self.assert_met()
        self.check("srun", "-N1", "-n1", *self.ftexec(), timeout=120)
        self.assert_met(world=1)

    def test_ways_to_deal_out_tasks(self):
        for options in (["-N2", "-n3", "--distribution=cyclic"], ["-N2", "-n3", "--distribution=block"]):
            with self.subTest(options=options):
                self.check("srun", "--overcommit", *options, *self.ftexec(), timeout=120)
                self.assert_met(world=3)
        hosts = self.dir / "hosts"
        listed = subprocess.run(["sinfo", "-h", "-N", "-o", "%N"], capture_output=True, text=True).stdout
        nodes = list(dict.fromkeys(listed.split()))[:2]  # a node of several partitions is listed several times
        hosts.write_text("\n".join(reversed(nodes)) + "\n")
        env = environment(SLURM_HOSTFILE=hosts)
        done = run("srun", "-n2", "--distribution=arbitrary", *self.ftexec(), env=env, timeout=120)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("SLURM_DISTRIBUTION='arbitrary'", done.stderr)
        self.check("srun", "-n2", "--distribution=arbitrary", f"--export=ALL,MASTER_ADDR={nodes[1]}", *self.ftexec(), env=env, timeout=120)
        self.assert_met()

    def test_two_steps_of_an_allocation_side_by_side(self):
        outs = [self.dir / f"{name}.jsonl" for name in "ab"]
        steps = " & ".join(f"srun --overlap -N2 -n2 {' '.join(map(str, self.ftexec(out)))}" for out in outs)
        self.check("salloc", "-N2", "-n2", "bash", "-c", steps + " & wait", timeout=120)
        for out in outs:
            self.assert_met(out)

    def test_ftrun_on_each_node(self):
        """The command of docs/launch/README.md."""
        text = (LAUNCH / "README.md").read_text()
        command = re.search(r"^    srun --ntasks-per-node=1 bash -c '(exec ftrun.*?)'$", text, re.M | re.S).group(1)
        for old, new in (("ftrun ", f"{BIN}/ftrun "), ("--nproc-per-node=4", "--nproc-per-node=1"), ("29500", str(free_port())),
                         ("ftexec plan.bin --data=corpus.txt", " ".join(map(str, self.ftexec())))):
            self.assertIn(old, command)
            command = command.replace(old, new)
        self.check("srun", "-N2", "--ntasks-per-node=1", "bash", "-c", command, timeout=120)
        self.assert_met()

    def test_without_srun_it_is_alone_and_says_so(self):
        line = " ".join(map(str, self.ftexec()))
        done = self.check("salloc", "-N2", "-n4", "--overcommit", "bash", "-c", line, timeout=120)
        self.assertRegex(done.stderr, r"ftexec: this process was not started by srun, so it trains alone, though SLURM_NTASKS='4'")
        self.assert_met(world=1)
        script, log = self.dir / "batch.sh", self.dir / "log"
        script.write_text(f"#!/bin/bash\n{line}\n")
        # From within a step, whose variables the script inherits.
        for around in ([], ["srun", "-N1", "-n1"]):
            with self.subTest(around=around):
                self.check(*around, "sbatch", "-W", "-N1", "-n2", "--overcommit", "-o", log, script, timeout=120)
                self.assertIn("SLURM_NTASKS='2'", log.read_text())
                self.assert_met(world=1)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "skipped: no Open MPI")
    def test_mpirun_in_an_allocation(self):
        """Its daemons are tasks of a step; ranks are on two nodes, and rank 0 on the first."""
        env = environment(**Mpi.ENVIRONMENT)
        self.check("salloc", "-N2", "--ntasks-per-node=1", "mpirun.openmpi", "-n", "2", "--map-by", "node", *self.ftexec(), env=env,
                   timeout=120)
        self.assert_met()

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "skipped: no MPICH")
    def test_mpiexec_in_an_allocation(self):
        self.check("salloc", "-N2", "--ntasks-per-node=1", "mpirun.mpich", "-n", "2", "-ppn", "1", *self.ftexec(), timeout=120)
        self.assert_met()

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 90
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.2)

    def test_the_sbatch_file_goes_back_into_the_queue(self):
        """Submitted as it lies there: SIGUSR1 ends its first start with status 143 (of a rank that saves nothing), the second one
        trains."""
        log = self.dir / "log"
        waiting = "trap 'exit 143' USR1; echo waiting; for i in {1..1000}; do sleep 0.1; done; exit 1"
        env = environment(PATH=self.ftexec_of_docs(f'if [ -z "$SLURM_RESTART_COUNT" ]; then {waiting}; fi'))
        job = self.check("sbatch", "--parsable", "-o", log, "--time=10", LAUNCH / "slurm.sbatch", self.plan("gpt2", "full_shard"), self.text,
                         self.dir / "checkpoints", env=env).stdout.strip()
        self.addCleanup(subprocess.run, ["scancel", job], stderr=subprocess.DEVNULL)

        def state():
            shown = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True).stdout
            return re.search(r"JobState=(\w+)", shown).group(1), int(re.search(r"Restarts=(\d+)", shown).group(1))

        def text():
            with contextlib.suppress(FileNotFoundError):
                return log.read_text()
            return ""

        self.wait_for(lambda: text().count("waiting") == 2, "the ranks did not start")
        self.check("scancel", "--signal=USR1", job)
        self.wait_for(lambda: state() == ("PENDING", 1), "the job did not go back into the queue")
        self.assertIn(f"status 143: job {job} goes back into the queue", text())
        # It would wait for two minutes there.
        self.check("scontrol", "update", f"JobId={job}", "StartTime=now")
        self.wait_for(lambda: state()[0] not in ("PENDING", "RUNNING", "COMPLETING"), "the second start did not end")
        self.assertEqual(state(), ("COMPLETED", 1), text())
        self.assert_met(self.dir / "checkpoints.metrics.jsonl")


class Files(EndToEnd):
    MANIFESTS = {"pytorchjob.yaml": ["PyTorchJob"], "jobset.yaml": ["JobSet"], "indexed-job.yaml": ["Service", "Job"]}

    def assert_known(self, flags, where):
        words = set(re.findall(r"--[a-z-]+", self.check("ftexec", "--help").stdout))
        self.assertEqual(sorted(flags - words - ANNOUNCED), [], where)
        self.assertGreaterEqual(len(flags), 4, where)  # it was read at all

    def test_nothing_announced_is_there_already(self):
        words = set(re.findall(r"--[a-z-]+", self.check("ftexec", "--help").stdout))
        self.assertEqual(sorted(ANNOUNCED & words), [], "take these out of ANNOUNCED: ftexec has them")

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
