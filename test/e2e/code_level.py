"""The code of plans that this machine runs: a compilation that makes it for all takes four times as long."""

import pathlib
import re


def _level():
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    has = set(flags[1].split()) if flags else set()
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= has:
        return "x86-64-v4"
    return "x86-64-v3" if {"avx2", "fma", "bmi1", "bmi2"} <= has else "x86-64-v2"


LEVEL = _level()
