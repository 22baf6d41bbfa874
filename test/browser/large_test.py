"""Large and hostile plans: how quickly their pages answer, and that what names hold stays text."""

import statistics
import time
import unittest

from reports import Pages

# Ends a script, begins another, loads a picture, ends a line of JavaScript; MLIR writes bytes as \XX.
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>\\E2\\80\\A8&amp;\\22'"

FIRST_SCREEN_S, POINTER_S = 3, 0.1


class Large(Pages):
    def first_screen(self, path):
        """Seconds from opening the page until its first screen and the chart that begins on it are drawn; the median of five."""
        seconds = []
        for _ in range(5):
            begin = time.monotonic()
            self.show(path)
            self.until("return document.querySelector('#memory [data-plan]').dataset.drawn")
            self.pictured()
            seconds.append(time.monotonic() - begin)
        return statistics.median(seconds)

    def answers(self, selector):
        """Seconds from an event of the pointer until what it changes is on the screen; the median of five places."""
        seconds = []
        for part in (0.2, 0.35, 0.5, 0.65, 0.8):
            seconds.append(self.browser.wait("""
                let begun = null, frames = 0;
                const svg = document.querySelector(given[0]), box = svg.getBoundingClientRect();
                const ask = () => {
                  if (begun === null) {
                    begun = performance.now();
                    svg.dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + given[1] * box.width, clientY: box.top + box.height / 2, bubbles: true}));
                    return 0;
                  }
                  return ++frames >= 2 ? performance.now() - begun : 0;
                };""", selector, part) / 1e3)
        return statistics.median(seconds)

    def is_quick(self, path, name):
        first = self.first_screen(path)
        self.section("memory")
        memory = self.answers("#memory svg")
        self.section("time")
        stream = self.answers("#time svg")
        print(f"\n{name}: first screen {first:.2f} s, pointer over memory {memory * 1e3:.0f} ms, over the time line {stream * 1e3:.0f} ms (medians of five), "
              f"{path.stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertLess(first, FIRST_SCREEN_S)
        self.assertLess(memory, POINTER_S)
        self.assertLess(stream, POINTER_S)

    def test_llama3_70b(self):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "llama3-70b", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--mixed-precision=bf16", "--remat=full", "--target=h100-ib", "--world-size=64", "-o", plan)
        path, data = self.report(plan, name="llama3-70b.html")
        self.assertLess(path.stat().st_size, 5e6)
        self.is_quick(path, "llama3-70b")
        self.assertEqual(data["plans"][0]["explain"]["parameters"], 70_553_706_496)

    def test_a_hostile_plan(self):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "gpt2", "--layers=1000", "--seq=16", "--batch=1", "-o", source)
        text = source.read_text()
        source.write_text(text.replace('layer = "transformer.h.', f'layer = "{HOSTILE}transformer.h.'))
        self.check("ftc", "compile", source, "--strategy=full_shard", "--micro-steps=2", "--remat=full", "--code=none", "-o", plan)
        path, data = self.report(plan, "--world-size=8", name="hostile.html")
        buffers = data["plans"][0]["buffers"]["name"]
        self.assertGreater(len(buffers), 100_000)
        self.is_quick(path, f"hostile, {len(buffers):,} buffers")
        for name in ("memory", "time", "traffic", "kernels", "recomputation", "scaling"):
            self.section(name)
        shown = self.browser.text("#memory .live-panel td button")
        self.assertIn("</script><script>document.title='owned'</script><img src=x onerror=", shown)
        self.browser.click("#memory .live-panel td button")
        self.assertEqual(self.browser.text("#memory .followed-panel h4"), f"Followed: {shown}")
        self.assertEqual(self.browser.run("return document.title"), "ft report: plan.bin")
        self.assertEqual(self.browser.run("return [document.scripts.length, document.images.length, document.querySelectorAll('main script, iframe').length]"), [3, 0, 0])

    def test_nothing_is_loaded(self):
        path, _ = self.report(self.plan("gpt2", "full_shard"))
        self.show(path)
        self.assertEqual(self.browser.run("return performance.getEntriesByType('resource').length"), 0)
        # The policy refuses a request that a script makes, a picture, a script and a style that come later. The console says so.
        self.browser.run("""
            window.refused = [];
            document.addEventListener('securitypolicyviolation', event => window.refused.push(event.effectiveDirective));
            fetch('data:,x').catch(() => {});
            const picture = document.createElement('img'), script = document.createElement('script'), style = document.createElement('style');
            picture.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw=';
            script.textContent = 'document.title = "owned"';
            style.textContent = 'body { display: none }';
            document.body.append(picture, script, style);""")
        refused = self.until("return window.refused.length === 4 && window.refused")
        self.assertEqual(sorted(refused), ["connect-src", "img-src", "script-src-elem", "style-src-elem"])
        self.assertEqual(self.browser.run("return document.title"), f"ft report: {self.plan('gpt2', 'full_shard').name}")
        self.assertTrue(self.browser.console())


if __name__ == "__main__":
    unittest.main()
