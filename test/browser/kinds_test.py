"""Pages of plans of all kinds: each chart is drawn, of numbers, and the console stays silent."""

import unittest

from reports import Pages

KINDS = (
    ("gpt2", "--strategy=full_shard", "--evaluate"),
    ("gpt2", "--strategy=no_shard", "--sample"),
    ("llama", "--strategy=full_shard", "--offload=optimizer:step", "--micro-steps=2", "--target=h100-ib"),
    ("gpt2", "--strategy=full_shard", "--offload=optimizer,parameters,activations", "--target=a100"),
    ("gpt2", "--strategy=hybrid_shard", "--mesh=replica:2,shard:2", "--remat=every_n:2"),
    ("gpt2", "--strategy=zero1", "--wrap=none", "--world-size=4", "--world-sizes=1"),
    ("llama", "--strategy=shard_grad_op", "--optimizer=muon", "--mixed-precision=bf16", "--master-weights=off"),
    ("gpt2", "--strategy=full_shard", "--prefetch=auto", "--memory-budget=3GiB", "--target=h100", "--world-size=64"),
    ("bert", "--strategy=full_shard", "--world-size=3"),
    ("vit", "--strategy=hybrid_shard_zero2", "--world-size=16"),
    ("free_transformer", "--compare=all", "--world-size=8"),
)


class Kinds(Pages):
    def test_all_kinds(self):
        for model, *options in KINDS:
            with self.subTest(model=model, options=options):
                source = self.dir / f"{model}.mlir"
                self.check("ftc", "model", model, "-o", source)
                path, data = self.report(source, *options)
                self.show(path)
                for section in self.browser.run("return [...document.querySelectorAll('main > section')].map(one => one.id)"):
                    self.section(section)
                    self.browser.run("document.querySelectorAll('#' + arguments[0] + ' summary').forEach(one => one.click())", section)
                self.pictured()
                self.assertEqual(self.browser.run("""
                    return [...document.querySelectorAll('main svg *')].filter(one => [...one.attributes].some(({value}) => /NaN|undefined|Infinity|null/.test(value)))
                        .map(one => one.outerHTML)"""), [])
                self.assertNotRegex(self.browser.text("main"), r"NaN|undefined|Infinity|\[object|\bnull\b")
                peaks = self.browser.run("return [...document.querySelectorAll('#memory [data-plan]')].map(one => Math.max(...one.chart.memory.total))")
                self.assertEqual(peaks, [plan["explain"]["max_live_bytes"] for plan in data["plans"]])
                self.assertEqual(self.browser.console(), [])


if __name__ == "__main__":
    unittest.main()
