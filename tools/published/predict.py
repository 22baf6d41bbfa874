"""Plans of rows, and the times that `ftc explain` says of them on a machine."""

import hashlib
import json
import pathlib
import subprocess
import tempfile

import rows


class Plans:
    """Compiles each row once."""

    def __init__(self, ftc, folder=None):
        self.ftc = str(ftc)
        self._own = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = pathlib.Path(folder or self._own.name)
        self.folder.mkdir(parents=True, exist_ok=True)

    def _run(self, *command):
        done = subprocess.run([self.ftc, *map(str, command)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise rows.NotExpressed((done.stderr.strip() or f"ftc ended with {done.returncode}").splitlines()[-1])
        return done.stdout

    def plan(self, row, machine_path, machine):
        assumptions = machine.get("assumptions", {})
        model, options = rows.model_options(row, assumptions), rows.compile_options(row, machine)
        program = pathlib.Path(self.ftc).stat()
        key = json.dumps([model, options, machine, program.st_mtime_ns])
        path = self.folder / (hashlib.sha256(key.encode()).hexdigest()[:24] + ".bin")
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:  # rows with one plan may be compiled at the same time
                source, plan = pathlib.Path(folder) / "model.mlir", pathlib.Path(folder) / "plan.bin"
                self._run("model", *model, "-o", source)
                self._run("compile", source, *options, f"--target={machine_path}", "-o", plan)
                plan.rename(path)
        return path

    def explain(self, plan, machine_path, ranks):
        return json.loads(self._run("explain", plan, f"--target={machine_path}", f"--world-size={ranks}", "--json"))
