"""Runs the modules of this folder, several at once: run_all.py [--jobs=2] [PATTERN...]. Prints what each printed when it has ended, the
end of those that failed once more, and what each took; exit status 1 when one of them failed."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ALONE = ("elastic_test", "torchrun_test")  # agents that are starved are taken for dead
LONGEST = ("import_test", "export_transformers_test", "lora_test", "random_graphs_test", "tokenize_test")  # begun first


def run(module, jobs):
    begin = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": str(max(1, os.cpu_count() // jobs))}
    done = subprocess.run([sys.executable, "-m", "unittest", "discover", f"--start-directory={HERE}", f"--pattern={module}.py", "--verbose"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True, errors="replace")
    return module, done.returncode, time.monotonic() - begin, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("patterns", nargs="*", default=["*_test"])
    options = parser.parse_args()
    modules = sorted({path.stem for pattern in options.patterns for path in HERE.glob(f"{pattern.removesuffix('.py')}.py")},
                     key=lambda name: (LONGEST.index(name) if name in LONGEST else len(LONGEST), name))
    if not modules:
        parser.error(f"no module of {HERE} is called {' or '.join(options.patterns)}")
    failed, taken = {}, []

    def report(module, status, seconds, text):
        print(f"=== {module}: {'passed' if status == 0 else 'FAILED'} ({seconds:.0f} s)\n{text}", flush=True)
        taken.append((seconds, module))
        if status != 0:
            failed[module] = text

    jobs = max(1, options.jobs)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        started = [pool.submit(run, module, jobs) for module in modules if module not in ALONE]
        try:
            for ended in concurrent.futures.as_completed(started):
                report(*ended.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for module in modules:
        if module in ALONE:
            report(*run(module, 1))
    for module, text in sorted(failed.items()):
        print(f"=== {module} FAILED, its end once more\n{text[-4000:]}")
    print(f"{len(modules) - len(failed)} of {len(modules)} modules passed; the longest: "
          + ", ".join(f"{module} {seconds:.0f} s" for seconds, module in sorted(taken, reverse=True)[:8]))
    if failed:
        print("FAILED: " + " ".join(sorted(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
