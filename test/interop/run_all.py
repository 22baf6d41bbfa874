"""Runs the modules of this folder, several at once: run_all.py [--jobs=2] [PATTERN...]. Prints what each printed when it has ended, those
that failed last, and what each took; exit status 1 when one of them failed."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LONGEST = ("import_test", "export_transformers_test", "lora_test", "random_graphs_test", "tokenize_test")  # begun first


def run(module):
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "unittest", "discover", f"--start-directory={HERE}", f"--pattern={module}.py", "--verbose"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
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
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for ended in concurrent.futures.as_completed([pool.submit(run, module) for module in modules]):
            module, status, seconds, text = ended.result()
            print(f"=== {module}: {'passed' if status == 0 else 'FAILED: see below'} ({seconds:.0f} s)", flush=True)
            taken.append((seconds, module))
            if status != 0:
                failed[module] = text
            else:
                print(text, flush=True)
    for module, text in sorted(failed.items()):
        print(f"=== {module} FAILED\n{text}")
    print(f"{len(modules) - len(failed)} of {len(modules)} modules passed; the longest: "
          + ", ".join(f"{module} {seconds:.0f} s" for seconds, module in sorted(taken, reverse=True)[:8]))
    if failed:
        print("FAILED: " + " ".join(sorted(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
