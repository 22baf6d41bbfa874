"""What `cmake --install` installs: programs that run from there, and manuals and completions that name all that --help names."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.BIN.parent
PROGRAMS = ("ftc", "ftexec", "ftrun", "ftckpt")


def flags_of(text):
    """Those that a page of --help lists: at the beginnings of lines, all spellings of each."""
    listed = re.findall(r"^  ((?:-\w|--[\w-]+)(?:\{\w+\})?(?:,(?:-\w|--[\w-]+)(?:\{\w+\})?)*)", text, re.MULTILINE)
    return {re.sub(r"\{.*\}", "", flag) for flags in listed for flag in flags.split(",")}


class Install(harness.EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scratch = tempfile.TemporaryDirectory(prefix="ft-install-")
        cls.addClassCleanup(scratch.cleanup)
        cls.prefix = pathlib.Path(scratch.name) / "prefix"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        cls.commands = {}  # of each program by command, "" for none: the flags that --help lists
        for program in PROGRAMS:
            page = harness.run(cls.prefix / "bin" / program, "--help").stdout
            commands = re.findall(r"^  (\w+)  ", page[page.find("Subcommands:"):], re.MULTILINE) if "Subcommands:" in page else []
            cls.commands[program] = {"": flags_of(page)}
            for command in commands:
                if command != "tokenize":  # of another program
                    cls.commands[program][command] = flags_of(harness.run(cls.prefix / "bin" / program, command, "--help").stdout)

    def complete(self, line, folder=None):
        """What bash would offer at the end of a line."""
        program = line.split()[0]
        script = (f"source '{self.prefix}/share/bash-completion/completions/{program}'\n"
                  f"COMP_LINE=$1 COMP_POINT=${{#1}} COMP_WORDS=() COMP_CWORD=0\n_{program}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "-uc", script, "bash", line], capture_output=True, text=True, check=False, cwd=folder or self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return set(done.stdout.split())

    def test_programs_say_what_they_are(self):
        version = re.search(r"project\(ft VERSION (\S+)", (harness.SOURCE / "CMakeLists.txt").read_text()).group(1)
        is_clone = subprocess.run(["git", "-C", harness.SOURCE, "rev-parse"], capture_output=True, check=False).returncode == 0
        for program in PROGRAMS:
            lines = self.check(self.prefix / "bin" / program, "--version").stdout.splitlines()
            said = re.fullmatch(rf"{program} {re.escape(version)}, commit (\w+)", lines[0])
            self.assertIsNotNone(said, lines)
            if is_clone:  # a commit of it, the last one when it was built
                self.check("git", "-C", harness.SOURCE, "cat-file", "-e", f"{said.group(1)}^{{commit}}")
        self.assertRegex(self.check(self.prefix / "bin" / "ftexec", "--version").stdout, r"(?m)^CUDA: (yes|no)$")
        self.assertRegex(self.check(self.prefix / "bin" / "ftc", "--version").stdout, r"(?m)^LLVM: 22\.")

    def test_programs_find_their_libraries_without_the_build(self):
        for program in PROGRAMS:
            dynamic = self.check("readelf", "-d", self.prefix / "bin" / program).stdout
            for path in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic):
                self.assertNotIn(str(BUILD), path)
            self.assertNotIn("not found", self.check("ldd", self.prefix / "bin" / program).stdout)

    def test_files_are_where_they_belong(self):
        for path in ("share/ft/targets/h100-ib.yaml", "share/ft/targets/validation/llmq-h100.yaml", "share/doc/ft/README.md",
                     "share/doc/ft/docs/launch/slurm.sbatch", "share/doc/ft/LICENSE"):
            self.assertTrue((self.prefix / path).is_file(), path)
        explained = self.check(self.prefix / "bin" / "ftc", "explain", self.plan("gpt2", "full_shard"), "--world-size=8",
                               f"--target={self.prefix}/share/ft/targets/h100-ib.yaml").stdout
        self.assertIn("tokens/s", explained)

    def test_manuals_name_every_flag(self):
        for program, commands in self.commands.items():
            page = (self.prefix / "share/man/man1" / f"{program}.1").read_text()
            named = set(re.findall(r"\\fB(-[\w-]+)\\fR", page.replace("\\-", "-")))
            for command, flags in commands.items():
                self.assertGreater(len(flags), 0, (program, command))
                self.assertEqual(flags - named, set(), (program, command))
                self.assertIn(f"{program} {command}".strip(), page)

    def test_manuals_are_roff(self):
        if not shutil.which("man"):
            self.skipTest("skipped: no man here")
        for program in PROGRAMS:
            done = subprocess.run(["man", "--warnings=w", "-l", self.prefix / "share/man/man1" / f"{program}.1"], capture_output=True, text=True,
                                  check=False, env={"MANWIDTH": "100", "MANROFFSEQ": "", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
            # A flag that is longer than a line cannot be broken.
            self.assertEqual([line for line in done.stderr.splitlines() if "break line" not in line], [], program)
            self.assertIn("EXIT STATUS", done.stdout)

    def test_bash_completes_every_flag(self):
        for program, commands in self.commands.items():
            for command, flags in commands.items():
                offered = {word.removesuffix("=") for word in self.complete(f"{program} {command} -".replace("  ", " "))}
                one_spelling = {flag for flag in flags if flag.startswith("--") and "_" not in flag and not flag.startswith("--rdzv")}
                self.assertEqual(one_spelling - offered, set(), (program, command))
                self.assertEqual(offered - flags, set(), (program, command))

    def test_bash_completes_commands_and_values(self):
        self.assertEqual(self.complete("ftc ex"), {"explain"})
        self.assertIn("verify", self.complete("ftckpt "))
        self.assertEqual(self.complete("ftexec plan.bin --device=c"), {"cpu", "cuda"})
        self.assertEqual(self.complete("ftexec plan.bin --device c"), {"cpu", "cuda"})
        self.assertEqual(self.complete("ftexec plan.bin --save-w"), {"--save-weights="})
        self.assertEqual(self.complete("ftc compile model.mlir --strategy=full"), {"full_shard"})
        self.assertEqual(self.complete("ftc tune model.mlir --prefetch="), {"pre", "post", "none", "auto"})
        self.assertEqual(self.complete("ftc compile model.mlir --offload "), {"optimizer", "parameters", "activations", "none"})
        self.assertIn("none", self.complete("ftc compile model.mlir --remat="))
        self.assertIn("transformer", self.complete("ftc compile model.mlir --wrap="))
        self.assertEqual(self.complete("ftc explain plan.bin --target=h100-i"), {"h100-ib"})
        self.assertEqual(self.complete("ftc compile model.mlir --frozen="), set())
        folder = self.dir / "files"
        (folder / "runs").mkdir(parents=True)
        (folder / "run.mlir").touch()
        self.assertEqual(self.complete("ftc compile ru", folder), {"run.mlir", "runs"})
        self.assertEqual(self.complete("ftexec plan.bin --checkpoint-dir=ru", folder), {"runs"})
        self.assertIn("bash", self.complete("ftrun --nproc-per-node=2 bas"))

    def test_zsh_takes_its_completions(self):
        for program, commands in self.commands.items():
            text = (self.prefix / "share/zsh/site-functions" / f"_{program}").read_text()
            self.assertTrue(text.startswith(f"#compdef {program}\n"))
            named = set(re.findall(r"'\*?(--?[\w-]+?)=?-?\[", text))
            for command, flags in commands.items():
                self.assertEqual(flags - named, set(), (program, command))
            if shutil.which("zsh"):
                self.check("zsh", "-n", self.prefix / "share/zsh/site-functions" / f"_{program}")


if __name__ == "__main__":
    unittest.main()
