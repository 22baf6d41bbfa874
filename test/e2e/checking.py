"""Running `ftexec --check` in tests, and reading its table."""

import re
import subprocess

from harness import BIN, EndToEnd, environment, left_in_shared_memory, run

ROW = re.compile(r"^(?:\[rank 0\] )?(ok|warn|FAIL)\s+(.+?)\s{2,}(.*)$")
COUNT = re.compile(r"^(?:\[rank 0\] )?checked (\d+): (\d+) ok, (\d+) warnings?, (\d+) failed$", re.MULTILINE)


class Checking(EndToEnd):
    def table(self, output):
        """Verdict and text by check, of the one table in the output."""
        counted = COUNT.findall(output)
        self.assertEqual(len(counted), 1, output)
        rows = [match.groups() for match in map(ROW.match, output.splitlines()) if match]
        verdicts = [row[0] for row in rows]
        self.assertEqual([int(n) for n in counted[0]], [len(rows), *(verdicts.count(v) for v in ("ok", "warn", "FAIL"))], output)
        self.assertEqual(len({row[1] for row in rows}), len(rows), output)
        return {check: (verdict, text) for verdict, check, text in rows}

    def files(self):
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns if path.is_file() else 0) for path in self.dir.rglob("*")}

    def command(self, plan, *options, world=1, data=None):
        ftexec = [BIN / "ftexec", plan, f"--data={data or self.text}", "--check", *options]
        return ftexec if world == 1 else [BIN / "ftrun", "--standalone", f"--nproc-per-node={world}", *ftexec]

    def checked(self, plan, *options, world=1, status=0, data=None, env=None):
        """The table of a check that has to end with a status and to leave nothing behind."""
        before = self.files()
        done = run(*self.command(plan, *options, world=world, data=data), env=env)
        said = f"{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, status, said)
        self.assertEqual(self.files(), before)
        self.assertEqual(left_in_shared_memory(), [])
        table = self.table(done.stdout)
        self.assertEqual(status != 0, any(verdict == "FAIL" for verdict, _ in table.values()), said)
        self.said = said
        return table

    def ranks_by_hand(self, plan, options_of, variables_of):
        """A process for each of the variables; their statuses and outputs."""
        processes = [subprocess.Popen(list(map(str, self.command(plan, *options_of(i)))), env=environment(**variables),
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for i, variables in enumerate(variables_of)]
        outputs = [process.communicate(timeout=60) for process in processes]
        return [(process.returncode, out, err) for process, (out, err) in zip(processes, outputs)]

    def shell(self, plan, script, world=2, **kwargs):
        """A check whose ranks get options of their own from a shell script, after `set --`."""
        text = f'{script}; exec {BIN}/ftexec {plan} --data={self.text} --check "$@"'
        return run("ftrun", "--standalone", f"--nproc-per-node={world}", "/bin/sh", "-c", text, **kwargs)
