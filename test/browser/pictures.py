"""The pictures of docs/report: python3 test/browser/pictures.py docs/report, with FT_BIN and PYTHONPATH as `make browser` sets them."""

import pathlib
import sys
import tempfile

from harness import BIN, SOURCE, run
from webdriver import Browser


def made(folder, name, *steps):
    for step in steps:
        done = run(*step)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
    return folder / f"{name}.html"


def pages(folder):
    """Llama 3 70B on 64 H100; a run of a small GPT-2; two strategies of one of 1.5 billion."""
    large, small, gpt2 = (folder / name for name in ("llama3-70b", "gpt2-debug", "gpt2-1.5b"))
    target = ("--target=h100-ib", "--world-size=64")
    yield made(folder, "llama3-70b", ("ftc", "model", "llama3-70b", "-o", f"{large}.mlir"),
               ("ftc", "compile", f"{large}.mlir", "--strategy=full_shard", "--mixed-precision=bf16", "--remat=full", *target, "-o", f"{large}.bin"),
               ("ftc", "report", f"{large}.bin", "-o", f"{large}.html"))
    yield made(folder, "gpt2-debug", ("ftc", "model", "gpt2", "-o", f"{small}.mlir"),
               ("ftc", "compile", f"{small}.mlir", "--strategy=full_shard", "-o", f"{small}.bin"),
               ("ftrun", "--nproc-per-node=2", "--standalone", BIN / "ftexec", f"{small}.bin", f"--data={SOURCE / 'LICENSE'}", "--steps=200", "--lr=1e-3",
                f"--metrics={small}.jsonl", f"--trace={small}.json", "--progress=off"),
               ("ftc", "report", f"{small}.bin", "--world-size=2", f"--run={small}.jsonl", f"--trace={small}.json", "-o", f"{small}.html"))
    yield made(folder, "gpt2-1.5b", ("ftc", "model", "gpt2", "--preset=1.5b", "--batch=8", "-o", f"{gpt2}.mlir"),
               ("ftc", "report", f"{gpt2}.mlir", "--compare=full_shard,no_shard", "--mixed-precision=bf16", "--target=a100-ib", "--world-size=16", "-o", f"{gpt2}.html"))


def take(page, out, section, height, dark=False, prepare=""):
    browser = Browser(width=1240, height=height, dark=dark)
    try:
        browser.open(page)
        browser.run("const one = document.getElementById(arguments[0]); one.scrollIntoView()", section)
        browser.wait("const ask = () => document.querySelector('#' + given[0] + ' svg, #' + given[0] + ' .card');", section)
        browser.run(prepare)
        # What has been drawn meanwhile above has moved it.
        browser.wait("let count = 0; const ask = () => ++count > 5;")
        browser.run("if (arguments[0] !== 'summary') document.getElementById(arguments[0]).scrollIntoView(); else scrollTo(0, 0)", section)
        browser.wait("let count = 0; const ask = () => ++count > 2;")
        out.write_bytes(browser.picture())
        print(f"{out}: {out.stat().st_size:,} bytes")
    finally:
        browser.close()


def main(out):
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ft-pictures-") as folder:
        large, small, gpt2 = pages(pathlib.Path(folder))
        chart = "const chart = document.querySelector('#{} [data-plan]').chart;"
        take(large, out / "first-screen.png", "summary", 1000)
        take(large, out / "memory.png", "memory", 1010, prepare=chart.format("memory") +
             "chart.move(2200); chart.follow([...chart.plan.bySize].find(i => chart.plan.buffers.class[i] === 4 && chart.plan.buffers.first[i] < 2200 && chart.plan.buffers.last[i] > 2200))")
        take(large, out / "time-line.png", "time", 500, prepare=chart.format("time") +
             "chart.window = [0, 60e6]; chart.redraw(); const lane = chart.lanes[0]; chart.choose(0, lane.items.find(item => item.wait && item.begin > 5e6) || lane.items[3])")
        take(small, out / "run.png", "run", 980)
        take(gpt2, out / "side-by-side.png", "memory", 640, dark=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
