// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives=prefetch=none --ftx-verify-schedule | FileCheck %s --check-prefix=NONE
// RUN: not ft-opt %s --split-input-file --ftx-overlap-collectives=prefetch=two 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: prefetch must be 'one' or 'none', not 'two'

// Three units: while one is used, the next is gathered, and not the one after.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
ft.unit @c {elements = 1024 : i64}
%pa = ftx.buffer "pa" parameters unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
%pc = ftx.buffer "pc" parameters unit_slice(@c, 4) persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @train_step
// NONE-LABEL: ftx.program @train_step
ftx.program @train_step {
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
  // NONE: "use" on compute ins(%fa
  // NONE-NEXT: ftx.release %fa
  // NONE-NEXT: ftx.buffer "fb"
  // NONE-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b
  // NONE-NEXT: ftx.wait %[[B]]
  %fa = ftx.buffer "fa" gathered unit_full(@a, 4)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%pa : whole f32) to (%fa : whole f32)
  ftx.wait %ta on compute
  ftx.kernel "use" on compute ins(%fa : whole f32) outs(%x : whole f32)
  ftx.release %fa
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32)
  ftx.wait %tb on compute
  ftx.kernel "use" on compute ins(%fb : whole f32) outs(%x : whole f32)
  ftx.release %fb
  %fc = ftx.buffer "fc" gathered unit_full(@c, 4)
  %tc = ftx.start all_gather on gather after compute over shard @c from (%pc : whole f32) to (%fc : whole f32)
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
// CHECK-LABEL: ftx.program @train_step
ftx.program @train_step {
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
// CHECK-LABEL: ftx.program @train_step
ftx.program @train_step {
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
