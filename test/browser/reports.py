"""What the tests of reports in a browser share: pages of plans, a browser for each class, and numbers as people read them."""

import json
import re

from harness import BIN, EndToEnd
from webdriver import Browser


def document(page):
    return json.loads(re.search(r'<script id="document" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


# A machine that was measured, by one rank, and whose host launches late.
MEASURED_MACHINE = """version: 1
device: cpu
ranks_per_node: 2
memory: {gigabytes_per_s: 100}
compute:
  fp32: {tflops: 1}
  bf16: {tflops: 1}
  fp16: {tflops: 1}
kernels: {latency_us: 2}
links:
  node: {gigabytes_per_s: 10, latency_us: 5}
  network: {gigabytes_per_s: 1, latency_us: 50}
copies: {gigabytes_per_s: 5, latency_us: 5}
stack: {launch_us: 60}
measured: {ranks: 1, threads: 1, dtypes: "fp32,bf16", drift: 0.01, spread: {products: 0.03}}
"""


def short(value, base, prefixes, unit):
    """Three digits and a prefix, written anew for the tests."""
    prefix = 0
    while value >= 999.5 and prefix + 1 < len(prefixes):
        value, prefix = value / base, prefix + 1
    digits = max(0, 2 - (len(f"{value:.0f}") - 1)) if value >= 0.9995 else 2
    text = f"{value:.0f}" if prefix == 0 and value == int(value) else f"{value:.{digits}f}"
    return f"{text} {prefixes[prefix]}{unit}"


def short_bytes(value):
    return short(value, 1024, ["", "Ki", "Mi", "Gi", "Ti"], "B")


def short_seconds(value):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 0.9995:
            return short(value * scale, 1000, [""], unit)
    return short(value * 1e9, 1000, [""], "ns")


class Pages(EndToEnd):
    """Opens pages in one browser and says at the end that its console was silent."""

    dark = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser(dark=cls.dark)
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.assertEqual(self.browser.console(), [])

    def report(self, *arguments, name="report.html"):
        """Path and data of a page."""
        path = self.shared / name
        self.check("ftc", "report", *arguments, "-o", path)
        return path, document(path.read_text())

    def show(self, path):
        self.browser.open(path)
        self.until("return document.documentElement.dataset.ready")

    def until(self, script, *arguments):
        """The value of a function body once it is there: asked again after each picture that the browser makes."""
        value = self.browser.wait(f"const ask = () => {{ {script} }};", *arguments)
        self.assertTrue(value, script)
        return value

    def section(self, name):
        """Scrolls to a section, over all of its panels: these are drawn when they come near."""
        for index in range(self.browser.run("return document.querySelectorAll('#' + arguments[0] + ' [data-plan]').length", name)):
            self.browser.run("document.querySelectorAll('#' + arguments[0] + ' [data-plan]')[arguments[1]].scrollIntoView()", name, index)
            self.until("return document.querySelectorAll('#' + given[0] + ' [data-plan]')[given[1]].dataset.drawn", name, index)
        self.browser.run("document.getElementById(arguments[0]).scrollIntoView()", name)

    def rows(self, section, title):
        """Rows of the table behind a chart, as texts, all of them; opens it as a reader does."""
        selector = f"#{section} details.table"
        index = self.browser.run("return [...document.querySelectorAll(arguments[0])].findIndex(one => one.textContent.includes(arguments[1]))", selector, title)
        self.assertGreaterEqual(index, 0, title)
        self.browser.run("document.querySelectorAll(arguments[0])[arguments[1]].querySelector('summary').click()", selector, index)
        self.until("return document.querySelectorAll(arguments[0])[arguments[1]].querySelector('tbody')", selector, index)
        return self.browser.run("""
            const details = document.querySelectorAll(arguments[0])[arguments[1]], more = details.querySelector('button:not(td button)');
            while (!more.hidden) more.click();
            return [...details.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))""", selector, index)

    def box(self, selector):
        return self.browser.run("const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.left, box.top, box.width, box.height]", selector)

    def place(self, selector, script, *arguments):
        """Pixels of what is seen for a place in a chart; `script` makes x and y of `chart`."""
        return self.browser.run(f"""
            const svg = document.querySelector(arguments[0]), chart = svg.closest('[data-plan]').chart;
            const [x, y] = ((chart, ...given) => {{ {script} }})(chart, ...[...arguments].slice(1));
            const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
            return [box.left + x * box.width / view.width, box.top + y * box.height / view.height]""", selector, *arguments)

    def ticks(self, section, axis):
        """Values of an axis of a section's first chart and where they stand: of the axis below (0) or on the left (1)."""
        return self.browser.run("""
            const axis = document.querySelectorAll(`#${arguments[0]} svg .axis`)[arguments[1]], left = arguments[1] === 1;
            return [...axis.querySelectorAll('.tick')].map(tick => {
              const {e, f} = tick.transform.baseVal.consolidate().matrix;
              return [tick.__data__, (left ? f : e) - 0.5];  // d3 puts lines into the middle of pixels
            })""", section, axis)

    def pictured(self):
        """Waits for what the last event has changed to be drawn."""
        self.browser.wait("let count = 0; const ask = () => ++count > 2;")


class RunPages(Pages):
    """Pages of one plan with a run of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = None

    def page(self):
        """Of GPT-2's debug preset with a run, made once."""
        if type(self).made is None:
            source, plan, metrics, trace = (self.shared / name for name in ("model.mlir", "plan.bin", "metrics.jsonl", "trace.json"))
            self.check("ftc", "model", "gpt2", "-o", source)
            self.check("ftc", "compile", source, "--strategy=full_shard", "--micro-steps=2", "--remat=full", "-o", plan)
            self.check("ftrun", "--nproc-per-node=2", "--standalone", BIN / "ftexec", plan, f"--data={self.text}", "--steps=12",
                       f"--metrics={metrics}", f"--trace={trace}", "--progress=off")
            type(self).made = (plan, *self.report(plan, "--world-size=2", f"--run={metrics}", f"--trace={trace}"))
        plan, path, data = type(self).made
        self.show(path)
        return plan, data
