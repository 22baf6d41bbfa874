#!/usr/bin/python3
"""What adding something costs, by example: each patch beside this file applies, alone and behind the others, and touches no more files than it may,
tests and generated pages aside (standard library and git only). To try them: git apply test/examples/*.patch && make"""

import pathlib
import re
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MAY_TOUCH = {"elementwise_op": 1, "norm": 1, "optimizer": 1, "model_family": 2, "compiler_option": 2}


def touched(patch):
    files = set(re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.M))
    return {file for file in files if not file.startswith(("test/", "docs/reference/"))}


class Examples(unittest.TestCase):
    def patches(self):
        return sorted(HERE.glob("*.patch"))

    def test_each_touches_as_many_files_as_it_may(self):
        self.assertEqual({patch.stem: len(touched(patch)) for patch in self.patches()}, MAY_TOUCH)

    def test_they_apply(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for patch in self.patches():
                for name in re.findall(r"^--- a/(\S+)$", patch.read_text(), re.M):
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes((ROOT / name).read_bytes())
            for patch in self.patches():
                alone = subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, capture_output=True, text=True)
                self.assertEqual(alone.returncode, 0, alone.stderr)
                behind = subprocess.run(["git", "apply", patch], cwd=folder, capture_output=True, text=True)
                self.assertEqual(behind.returncode, 0, behind.stderr)


if __name__ == "__main__":
    unittest.main()
