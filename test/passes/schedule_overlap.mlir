// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives=prefetch=none --ftx-verify-schedule | FileCheck %s --check-prefix=NONE
// RUN: ft-opt %s --split-input-file '--ftx-overlap-collectives=forward-prefetch=2 limit-all-gathers=0' --ftx-verify-schedule | FileCheck %s --check-prefix=TWO
// RUN: ft-opt %s --split-input-file '--ftx-overlap-collectives=forward-prefetch=2 limit-all-gathers=3' --ftx-verify-schedule | FileCheck %s --check-prefix=TWO
// RUN: ft-opt %s --split-input-file '--ftx-overlap-collectives=forward-prefetch=2 limit-all-gathers=2' --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives=limit-all-gathers=1 --ftx-verify-schedule | FileCheck %s --check-prefix=NOFETCH
// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives=forward-prefetch=0 --ftx-verify-schedule | FileCheck %s --check-prefix=NOFETCH
// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives=prefetch=post --ftx-verify-schedule | FileCheck %s --check-prefix=POST
// RUN: not ft-opt %s --split-input-file --ftx-overlap-collectives=prefetch=two 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: prefetch must be 'pre', 'post' or 'none', not 'two'

// Three units: while one is used, the next is gathered, and not the one after.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
ft.unit @c {elements = 1024 : i64}
%pa = ftx.buffer "pa" parameters unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
%pc = ftx.buffer "pc" parameters unit_slice(@c, 4) persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @forward
// NONE-LABEL: ftx.program @forward
// TWO-LABEL: ftx.program @forward
// NOFETCH-LABEL: ftx.program @forward
ftx.program @forward {
  // CHECK: %[[A:.*]] = ftx.start all_gather {{.*}} @a
  // CHECK-NEXT: ftx.wait %[[A]]
  // CHECK-NEXT: ftx.buffer "fb"
  // CHECK-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b
  // CHECK-NEXT: "use" on compute ins(%fa
  // CHECK-NEXT: ftx.release %fa
  // CHECK-NEXT: ftx.wait %[[B]]
  // CHECK-NEXT: ftx.buffer "fc"
  // CHECK-NEXT: %[[C:.*]] = ftx.start all_gather {{.*}} @c
  // CHECK-NEXT: "use" on compute ins(%fb
  // CHECK-NEXT: ftx.release %fb
  // CHECK-NEXT: ftx.wait %[[C]]
  // CHECK-NEXT: "use" on compute ins(%fc
  // TWO: %[[A:.*]] = ftx.start all_gather {{.*}} @a
  // TWO-NEXT: ftx.wait %[[A]]
  // TWO: %[[B:.*]] = ftx.start all_gather {{.*}} @b
  // TWO: %[[C:.*]] = ftx.start all_gather {{.*}} @c
  // TWO-NEXT: "use" on compute ins(%fa
  // TWO-NEXT: ftx.release %fa
  // TWO-NEXT: ftx.wait %[[B]]
  // TWO-NEXT: "use" on compute ins(%fb
  // NOFETCH: "use" on compute ins(%fa
  // NOFETCH-NEXT: ftx.release %fa
  // NOFETCH-NEXT: ftx.buffer "fb"
  // NOFETCH-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b
  // NOFETCH-NEXT: ftx.wait %[[B]]
  // NONE: "use" on compute ins(%fa
  // NONE-NEXT: ftx.release %fa
  // NONE-NEXT: ftx.buffer "fb"
  // NONE-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b
  // NONE-NEXT: ftx.wait %[[B]]
  %fa = ftx.buffer "fa" gathered unit_full(@a, 4)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%pa : whole f32) to (%fa : whole f32) {phase = "forward"}
  ftx.wait %ta on compute
  ftx.kernel "use" on compute ins(%fa : whole f32) outs(%x : whole f32)
  ftx.release %fa
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32) {phase = "forward"}
  ftx.wait %tb on compute
  ftx.kernel "use" on compute ins(%fb : whole f32) outs(%x : whole f32)
  ftx.release %fb
  %fc = ftx.buffer "fc" gathered unit_full(@c, 4)
  %tc = ftx.start all_gather on gather after compute over shard @c from (%pc : whole f32) to (%fc : whole f32) {phase = "forward"}
  ftx.wait %tc on compute
  ftx.kernel "use" on compute ins(%fc : whole f32) outs(%x : whole f32)
  ftx.release %fc
}

// -----

// A gather does not pass the kernel that writes what it reads.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%pa = ftx.buffer "pa" parameters unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
// CHECK-LABEL: ftx.program @writes
ftx.program @writes {
  %fa = ftx.buffer "fa" gathered unit_full(@a, 4)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%pa : whole f32) to (%fa : whole f32)
  ftx.wait %ta on compute
  // CHECK: "update" on compute ins() outs(%pb
  // CHECK: ftx.start all_gather {{.*}} @b
  // CHECK: "use" on compute ins(%fa
  ftx.kernel "update" on compute ins() outs(%pb : whole f32)
  ftx.kernel "use" on compute ins(%fa : whole f32) outs()
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32)
  ftx.wait %tb on compute
}

// -----

// Reductions: a unit's is waited for where the next one starts or where its result is used, the loss's at the end.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%ga = ftx.buffer "ga" gradients unit_slice(@a, 4) persistent
%gb = ftx.buffer "gb" gradients unit_slice(@b, 4) persistent
%loss = ftx.buffer "loss" io constant(4) persistent
// CHECK-LABEL: ftx.program @reductions
ftx.program @reductions {
  // CHECK: "forward" on compute
  // CHECK-NEXT: %[[L:.*]] = ftx.start all_reduce
  // CHECK-NEXT: ftx.buffer "fa"
  // CHECK-NEXT: "backward" on compute ins() outs(%fa
  // CHECK-NEXT: %[[A:.*]] = ftx.start reduce_scatter {{.*}} @a
  // CHECK-NEXT: ftx.buffer "fb"
  // CHECK-NEXT: "backward" on compute ins() outs(%fb
  // CHECK-NEXT: ftx.wait %[[A]] on compute
  // CHECK-NEXT: %[[B:.*]] = ftx.start reduce_scatter {{.*}} @b
  // CHECK-NEXT: "optimizer" on compute ins(%ga
  // CHECK-NEXT: ftx.wait %[[B]] on compute
  // CHECK-NEXT: "optimizer" on compute ins(%gb
  // CHECK-NEXT: ftx.wait %[[L]] on compute
  // CHECK-NEXT: ftx.output "loss"
  ftx.kernel "forward" on compute ins() outs(%loss : tensor<f32>)
  %tl = ftx.start all_reduce on reduce after compute over world from (%loss : tensor<f32>) to ()
  ftx.wait %tl on compute
  %fa = ftx.buffer "fa" staging unit_full(@a, 4)
  ftx.kernel "backward" on compute ins() outs(%fa : whole f32)
  %ta = ftx.start reduce_scatter on reduce after compute over shard @a from (%fa : whole f32) to (%ga : whole f32)
  ftx.wait %ta on compute
  %fb = ftx.buffer "fb" staging unit_full(@b, 4)
  ftx.kernel "backward" on compute ins() outs(%fb : whole f32)
  %tb = ftx.start reduce_scatter on reduce after compute over shard @b from (%fb : whole f32) to (%gb : whole f32)
  ftx.wait %tb on compute
  ftx.kernel "optimizer" on compute ins(%ga : whole f32) outs()
  ftx.kernel "optimizer" on compute ins(%gb : whole f32) outs()
  ftx.output "loss" %loss : tensor<f32>
}

// -----

// Backward: pre gathers the next unit before this one's gradients are computed, post behind its last use, in front of the
// reduction. How far forward looks ahead changes nothing here.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%pa = ftx.buffer "pa" parameters unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
%gb = ftx.buffer "gb" gradients unit_slice(@b, 4) persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @backward
// TWO-LABEL: ftx.program @backward
// POST-LABEL: ftx.program @backward
ftx.program @backward {
  // CHECK: ftx.wait
  // CHECK-NEXT: ftx.buffer "sb"
  // CHECK-NEXT: ftx.buffer "fa"
  // CHECK-NEXT: %[[A:.*]] = ftx.start all_gather {{.*}} @a
  // CHECK: "backward" on compute ins(%fb
  // CHECK-NEXT: ftx.release %fb
  // CHECK-NEXT: ftx.start reduce_scatter
  // CHECK-NEXT: ftx.wait %[[A]]
  // TWO: ftx.wait
  // TWO-NEXT: ftx.buffer "sb"
  // TWO-NEXT: ftx.buffer "fa"
  // TWO-NEXT: ftx.start all_gather {{.*}} @a
  // TWO: "backward" on compute ins(%fb
  // POST: "backward" on compute ins(%fb
  // POST-NEXT: ftx.release %fb
  // POST-NEXT: ftx.buffer "fa"
  // POST-NEXT: %[[A:.*]] = ftx.start all_gather {{.*}} @a
  // POST-NEXT: %[[R:.*]] = ftx.start reduce_scatter
  // POST-NEXT: ftx.wait %[[A]]
  // POST-NEXT: "backward" on compute ins(%fa
  // POST-NEXT: ftx.wait %[[R]]
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32) {phase = "backward"}
  ftx.wait %tb on compute
  %sb = ftx.buffer "sb" staging unit_full(@b, 4)
  ftx.kernel "backward" on compute ins(%fb : whole f32) outs(%sb : whole f32)
  ftx.release %fb
  %rb = ftx.start reduce_scatter on reduce after compute over shard @b from (%sb : whole f32) to (%gb : whole f32) {phase = "backward"}
  ftx.wait %rb on compute
  %fa = ftx.buffer "fa" gathered unit_full(@a, 4)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%pa : whole f32) to (%fa : whole f32) {phase = "backward"}
  ftx.wait %ta on compute
  ftx.kernel "backward" on compute ins(%fa : whole f32) outs(%x : whole f32)
}

// -----

// A cast into the gathered buffer goes along with its gather, and the copy that feeds the cast begins earlier still.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%pa = ftx.buffer "pa" optimizer_state unit_slice(@a, 4) host persistent
%pb = ftx.buffer "pb" optimizer_state unit_slice(@b, 4) host persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @chains
ftx.program @chains {
  // CHECK: %[[CA:.*]] = ftx.start copy on h2d after compute from (%pa
  // CHECK-NEXT: ftx.wait %[[CA]]
  // CHECK: "cast" on compute ins(%ha : whole f32) outs(%fa : own bf16)
  // CHECK-NEXT: %[[A:.*]] = ftx.start all_gather {{.*}} @a
  // CHECK-NEXT: ftx.buffer "hb"
  // CHECK-NEXT: %[[CB:.*]] = ftx.start copy on h2d after compute from (%pb
  // CHECK-NEXT: ftx.wait %[[A]]
  // CHECK-NEXT: ftx.wait %[[CB]]
  // CHECK: "cast" on compute ins(%hb : whole f32) outs(%fb : own bf16)
  // CHECK-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b
  // CHECK-NEXT: "use" on compute ins(%fa
  // CHECK-NEXT: ftx.release %fa
  // CHECK-NEXT: ftx.wait %[[B]]
  %ha = ftx.buffer "ha" staging unit_slice(@a, 4)
  %ca = ftx.start copy on h2d after compute from (%pa : whole f32) to (%ha : whole f32) {phase = "forward"}
  ftx.wait %ca on compute
  %fa = ftx.buffer "fa" gathered unit_full(@a, 2)
  ftx.kernel "cast" on compute ins(%ha : whole f32) outs(%fa : own bf16)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%fa : own bf16) to (%fa : whole bf16) {phase = "forward"}
  ftx.wait %ta on compute
  ftx.kernel "use" on compute ins(%fa : whole bf16) outs(%x : whole f32)
  ftx.release %fa
  %hb = ftx.buffer "hb" staging unit_slice(@b, 4)
  %cb = ftx.start copy on h2d after compute from (%pb : whole f32) to (%hb : whole f32) {phase = "forward"}
  ftx.wait %cb on compute
  %fb = ftx.buffer "fb" gathered unit_full(@b, 2)
  ftx.kernel "cast" on compute ins(%hb : whole f32) outs(%fb : own bf16)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%fb : own bf16) to (%fb : whole bf16) {phase = "forward"}
  ftx.wait %tb on compute
  ftx.kernel "use" on compute ins(%fb : whole bf16) outs(%x : whole f32)
  ftx.release %fb
}

// -----

// Optimizer state in host memory: the next unit's is fetched while this one's is updated and copied back.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%ma = ftx.buffer "ma" optimizer_state unit_slice(@a, 4) host persistent
%mb = ftx.buffer "mb" optimizer_state unit_slice(@b, 4) host persistent
// CHECK-LABEL: ftx.program @optimizer
ftx.program @optimizer {
  // CHECK: ftx.wait %{{.*}} on compute
  // CHECK-NEXT: ftx.buffer "hb"
  // CHECK-NEXT: %[[IN:.*]] = ftx.start copy on h2d after compute from (%mb
  // CHECK-NEXT: "update" on compute ins() outs(%ha
  // CHECK-NEXT: %[[OUT:.*]] = ftx.start copy on d2h after compute from (%ha
  // CHECK-NEXT: ftx.wait %[[IN]]
  // CHECK-NEXT: "update" on compute ins() outs(%hb
  // CHECK-NEXT: ftx.wait %[[OUT]]
  // CHECK-NEXT: ftx.start copy on d2h after compute from (%hb
  // NONE-LABEL: copy on d2h after compute from (%ha
  // NONE-NEXT: ftx.wait
  // NONE-NEXT: ftx.buffer "hb"
  // NONE-NEXT: %{{.*}} = ftx.start copy on h2d after compute from (%mb
  // NONE-NEXT: ftx.wait
  // NONE-NEXT: "update" on compute ins() outs(%hb
  %ha = ftx.buffer "ha" optimizer_state unit_slice(@a, 4)
  %ia = ftx.start copy on h2d after compute from (%ma : whole f32) to (%ha : whole f32) {phase = "optimizer"}
  ftx.wait %ia on compute
  ftx.kernel "update" on compute ins() outs(%ha : whole f32)
  %oa = ftx.start copy on d2h after compute from (%ha : whole f32) to (%ma : whole f32) {phase = "optimizer"}
  ftx.wait %oa on compute
  %hb = ftx.buffer "hb" optimizer_state unit_slice(@b, 4)
  %ib = ftx.start copy on h2d after compute from (%mb : whole f32) to (%hb : whole f32) {phase = "optimizer"}
  ftx.wait %ib on compute
  ftx.kernel "update" on compute ins() outs(%hb : whole f32)
  %ob = ftx.start copy on d2h after compute from (%hb : whole f32) to (%mb : whole f32) {phase = "optimizer"}
  ftx.wait %ob on compute
}

// -----

// What was copied to the host is not fetched before it is there.

%there = ftx.buffer "there" activations constant(4096) host persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @activations
ftx.program @activations {
  // CHECK: %[[OUT:.*]] = ftx.start copy on d2h
  // CHECK: ftx.wait %[[OUT]]
  // CHECK-NEXT: %{{.*}} = ftx.start copy on h2d
  %a = ftx.buffer "a" activations constant(4096)
  ftx.kernel "forward" on compute ins() outs(%a : whole f32)
  %o = ftx.start copy on d2h after compute from (%a : whole f32) to (%there : whole f32)
  ftx.wait %o on compute
  %b = ftx.buffer "b" activations constant(4096)
  %i = ftx.start copy on h2d after compute from (%there : whole f32) to (%b : whole f32)
  ftx.wait %i on compute
  ftx.kernel "backward" on compute ins(%b : whole f32) outs(%x : whole f32)
}
