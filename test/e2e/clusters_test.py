"""Clusters: whatever is together, walked or as code, the bits are the same; code is what ftc makes again."""

import itertools
import os
import re
import shutil
import unittest

from harness import EndToEnd, run
from code_level import LEVEL
from plan_bytes import HEADER_BYTES, encode, fields, with_payload

CLUSTER, CODES, TARGET, CODE, ENTRY = 24, 7, 1, 2, 3  # numbers of plan.proto

MODEL = """module attributes {ft.vocab_size = 256 : i64} {
  ft.parameter @table : tensor<256x40xf32> = #ft.init<normal, 1.0> {layer = "embed"}
  ft.parameter @scale : tensor<40xf32> = #ft.init<constant, 1.0> {layer = "h.0"}
  ft.parameter @norm : tensor<20xf32> = #ft.init<constant, 1.0> {layer = "h.1"}
  ft.parameter @head : tensor<256x40xf32> = #ft.init<normal, 0.1> {layer = "head"}
  func.func private @normed(%x: tensor<2x24x40xf32>, %w: tensor<40xf32>) -> tensor<2x24x40xf32> attributes {ft.composite} {
    %s = ft.square %x : tensor<2x24x40xf32>
    %r = ft.reduce "sum" %s over [2] : tensor<2x24x40xf32> -> tensor<2x24xf32>
    %m = ft.scale %r, 0.025 : tensor<2x24xf32>
    %e = ft.shift %m, 1.0e-5 : tensor<2x24xf32>
    %q = ft.rsqrt %e : tensor<2x24xf32>
    %c = ft.reshape %q : tensor<2x24xf32> -> tensor<2x24x1xf32>
    %b = ft.broadcast %c : tensor<2x24x1xf32> -> tensor<2x24x40xf32>
    %n = ft.mul %x, %b : tensor<2x24x40xf32>
    %y = ft.mul %n, %w : tensor<2x24x40xf32>, tensor<40xf32>
    return %y : tensor<2x24x40xf32>
  }
  func.func @forward(%tokens: tensor<2x24xi32>, %targets: tensor<2x24xi32>) -> tensor<f32> {
    %t = ft.get @table {layer = "embed"} : tensor<256x40xf32>
    %x = ft.embedding %tokens, %t {layer = "embed"} : (tensor<2x24xi32>, tensor<256x40xf32>) -> tensor<2x24x40xf32>
    %w = ft.get @scale {layer = "h.0"} : tensor<40xf32>
    %a = ft.call @normed(%x, %w) {layer = "h.0"} : (tensor<2x24x40xf32>, tensor<40xf32>) -> tensor<2x24x40xf32>
    %g = ft.squared_relu %a {layer = "h.0"} : tensor<2x24x40xf32>
    %s = ft.add %x, %g {layer = "h.0"} : tensor<2x24x40xf32>
    %p = ft.softmax %s {layer = "h.1"} : tensor<2x24x40xf32>
    %n = ft.get @norm {layer = "h.1"} : tensor<20xf32>
    %k = ft.qk_norm %p, %n heads 2 eps 1.0e-6 {layer = "h.1"} : tensor<2x24x40xf32>, tensor<20xf32>
    %u = ft.add %s, %k {layer = "h.1"} : tensor<2x24x40xf32>
    %h = ft.get @head {layer = "head"} : tensor<256x40xf32>
    %l = ft.matmul %u, %h transpose_b {layer = "head"} : (tensor<2x24x40xf32>, tensor<256x40xf32>) -> tensor<2x24x256xf32>
    %c = ft.soft_cap %l, 30.0 {layer = "head"} : tensor<2x24x256xf32>
    %loss = ft.cross_entropy %c, %targets {layer = "head"} : (tensor<2x24x256xf32>, tensor<2x24xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
"""


class Clusters(EndToEnd):
    def setUp(self):
        super().setUp()
        self.model = self.dir / "model.mlir"
        self.model.write_text(MODEL)

    def compiled(self, *options):
        plan = self.dir / "plan.bin"
        self.check("ftc", "compile", self.model, *options, "-o", plan)
        return plan

    def losses(self, plan, *options, world=1):
        rows = self.train(plan, world, "--threads=1", *options, steps=3)
        return tuple((row["loss"], row["grad_norm"]) for row in rows)

    def with_code(self, plan, edit):
        """The plan with the fields of each piece of code edited, its hash right."""
        of_cluster = lambda cluster: encode([(n, k, encode(edit(fields(v)))) if n == CODES else (n, k, v) for n, k, v in fields(cluster)])
        data = plan.read_bytes()
        payload = encode([(n, k, of_cluster(v)) if n == CLUSTER else (n, k, v) for n, k, v in fields(data[HEADER_BYTES:])])
        self.assertNotEqual(payload, data[HEADER_BYTES:])
        edited = self.dir / "edited.bin"
        edited.write_bytes(with_payload(data, payload))
        return edited

    def test_no_bit_depends_on_what_is_together(self):
        for precision, world in (("no", 1), ("bf16", 2), ("fp16", 1)):
            seen = {}
            for ops, strategy in itertools.product((1, 3, 64), ("no_shard", "full_shard")):
                plan = self.compiled(f"--strategy={strategy}", f"--mixed-precision={precision}", f"--cluster-ops={ops}",
                                     f"--remat={'full' if ops == 3 else 'none'}")
                for kernels in ("generated", "reference"):
                    seen.setdefault(self.losses(plan, f"--kernels={kernels}", world=world), []).append((ops, strategy, kernels))
            self.assertEqual(len(seen), 1, (precision, seen))

    def test_many_ops_are_few_kernels(self):
        """The whole of what lies between embedding and product, norm, softmax and their derivatives."""
        kernels, times, floors = {}, {}, set()
        for ops in (1, 64):
            plan = self.compiled("--strategy=no_shard", f"--cluster-ops={ops}", "--code=all")
            step = self.check("ftc", "dump", plan).stdout.split("program train_step")[1].split("program ")[0]
            kernels[ops] = step.count(" compute ")
            bodies = self.check("ftc", "dump", plan, "--kernels").stdout
            counted = re.search(r"^train_step: .* moved by products, .* between them: (\S+) times the floor, (.*) \(", bodies, re.MULTILINE)
            times[ops], floor = float(counted.group(1)), counted.group(2)
            floors.add(floor)
        self.assertLess(kernels[64], kernels[1] * 0.6, kernels)
        self.assertEqual(len(floors), 1, floors)  # of the ops alone, however the rest is cut
        self.assertLess(1, times[64])
        self.assertLess(1.5 * times[64], times[1])
        self.assertRegex(bodies, r"cluster \d+: 48 rows of 40, run by 1 instruction; reads \d+ B, writes \d+ B\n  %0 = input \d+ : f32 \[48, 40\]")
        self.assertRegex(bodies, r"%\d+ = reduce_sum %\d+ : f32  # after 1 pass over the row")
        self.assertRegex(bodies, r"code x86-64-v4: \d+ B\n")
        has_ptxas = shutil.which("ptxas", path=os.pathsep.join((os.environ["PATH"], "/usr/local/cuda/bin")))
        self.assertRegex(bodies, r"code ptx: \d+ B" + "".join(rf", {sm} \d+ registers" for sm in ("sm_80", "sm_90", "sm_100") if has_ptxas) + "\n")
        self.assertNotIn("spilled", bodies)

    def test_code_for_the_machines_that_are_asked_for(self):
        """Elsewhere a body is computed op by op, which a run says unless it was asked for; the bits are the same."""
        every = self.losses(self.compiled("--strategy=no_shard", "--code=all"))
        for wanted, made in (("none", []), ("ptx", ["ptx"]), ("x86-64-v3,x86-64-v4,ptx", ["ptx", "x86-64-v3", "x86-64-v4"])):
            plan = self.compiled("--strategy=no_shard", f"--code={wanted}")
            self.assertEqual(sorted(set(re.findall(r"code (\S+):", self.check("ftc", "dump", plan, "--kernels").stdout))), made)
            self.check("ftc", "verify", plan)
            for options in ((), ("--kernels=reference",)):
                done = self.check("ftexec", plan, f"--data={self.text}", "--steps=1", *options)
                self.assertEqual(f"the plan has no code for {LEVEL}" in done.stderr, bool(made) and LEVEL not in made and not options, done.stderr)
            self.assertEqual(self.losses(plan), every, wanted)
        done = run("ftc", "compile", self.model, "--strategy=no_shard", "--code=x86-64-v5", "-o", self.dir / "p.bin")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("'x86-64-v5' matches no machine", done.stderr)

    def test_code_is_what_the_compiler_makes_again(self):
        plan = self.compiled("--strategy=no_shard", "--code=all")
        self.assertRegex(self.check("ftc", "verify", plan).stdout, r"code: \d+ pieces for \d+ clusters, the same when made again")
        damaged = self.with_code(plan, lambda code: [(n, k, bytes([v[0] ^ 1]) + v[1:]) if n == CODE else (n, k, v) for n, k, v in code])
        done = run("ftc", "verify", damaged)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("cluster 0: its code for x86-64-v2 is not what this compiler makes of its body", done.stderr)
        for target in (b"x86-*", b"all", b"sparc"):  # names that are no machine's
            named = self.with_code(plan, lambda code: [(n, k, target) if n == TARGET else (n, k, v) for n, k, v in code])
            done = run("ftc", "verify", named)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn(f"cluster 0: its code for {target.decode()} is not what this compiler makes of its body", done.stderr)
        # Which is not run where none is wanted.
        self.assertEqual(self.losses(damaged, "--kernels=reference"), self.losses(plan))

    def test_an_entry_behind_the_code_is_refused(self):
        plan = self.with_code(self.compiled("--strategy=no_shard"),
                              lambda code: [f for f in code if f[0] != ENTRY] + [(ENTRY, 0, 1 << 40)])
        done = run("ftexec", plan, f"--data={self.text}", "--steps=1")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertRegex(done.stderr, rf"cluster 0: its code for {LEVEL} begins behind its end")


if __name__ == "__main__":
    unittest.main()
