"""A product and a copy that are none of ours, timed at once in as many processes as a run has threads: how fast the machine is just now.
Each has one thread: of a product that two share the slower one says how long it takes, which changes by a tenth from one second to the next.

    reference.py SECONDS    prints the seconds of a product and of a copy, the median of those that SECONDS have room for, each
"""
import ctypes
import ctypes.util
import os
import statistics
import subprocess
import sys
import time

SIZE = 768
COPIED = 48 << 20
SECONDS = 0.25  # of each, where nobody says otherwise


def median(call, seconds):
    call()
    taken, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds or len(taken) < 3:
        at = time.perf_counter()
        call()
        taken.append(time.perf_counter() - at)
    return statistics.median(taken)


def measure(seconds):
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # builds for OpenMP read the latter
    blas = ctypes.CDLL(ctypes.util.find_library("openblas"))
    matrix = (ctypes.c_float * (SIZE * SIZE))(*([0.01] * (SIZE * SIZE)))
    result = (ctypes.c_float * (SIZE * SIZE))()
    row_major, plain = 101, 111
    one = ctypes.c_float(1)

    def product():
        blas.cblas_sgemm(row_major, plain, plain, SIZE, SIZE, SIZE, one, matrix, SIZE, matrix, SIZE, ctypes.c_float(0), result, SIZE)

    source, target = ctypes.create_string_buffer(b"x" * COPIED, COPIED), ctypes.create_string_buffer(COPIED)
    return median(product, seconds), median(lambda: ctypes.memmove(target, source, COPIED), seconds)


def of_machine(processes, seconds=SECONDS):
    """Seconds of both, the mean over the processes."""
    started = [subprocess.Popen([sys.executable, "-B", __file__, str(seconds)], stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    lines = [process.communicate()[0].split() for process in started]
    return [statistics.mean(float(line[i]) for line in lines) for i in range(2)]


if __name__ == "__main__":
    print(*measure(float(sys.argv[1])))
