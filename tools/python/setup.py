"""The version is that of the project. With FT_PROGRAMS=FOLDER a wheel has the programs of that folder too, and is of their platform."""
import os
import pathlib
import re
import shutil
import sysconfig

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

PROJECT = pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt"
PROGRAMS = sorted(pathlib.Path(os.environ["FT_PROGRAMS"]).iterdir()) if "FT_PROGRAMS" in os.environ else []


def version():
    found = re.search(r"^project\(ft VERSION (\S+)", PROJECT.read_text(), re.MULTILINE) if PROJECT.is_file() else None
    if found is None:
        raise SystemExit(f"ft: the version is read from {PROJECT}, which has none: install from tools/python of a whole clone")
    return found.group(1)


class WithPrograms(Distribution):
    def has_ext_modules(self):
        return bool(PROGRAMS)


class WheelOfPrograms(bdist_wheel):
    """Of any Python 3 of the platform: programs know none. They are copied as they are; setuptools takes scripts for text."""

    def get_tag(self):
        platform = self.plat_name or sysconfig.get_platform()
        return ("py3", "none", re.sub(r"[-.]", "_", platform)) if PROGRAMS else super().get_tag()

    def write_wheelfile(self, *args, **kwargs):
        super().write_wheelfile(*args, **kwargs)
        if not PROGRAMS:
            return
        scripts = pathlib.Path(self.bdist_dir) / f"{self.wheel_dist_name}.data" / "scripts"
        scripts.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            shutil.copy(program, scripts)
            (scripts / program.name).chmod(0o755)


setup(version=version(), distclass=WithPrograms, cmdclass={"bdist_wheel": WheelOfPrograms})
