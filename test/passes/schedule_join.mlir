// RUN: ft-opt %s --split-input-file '--ftx-join-transfers=bucket-cap-mb=0.008' --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file '--ftx-join-transfers=bucket-cap-mb=0' --ftx-verify-schedule | FileCheck %s --check-prefix=NONE
// RUN: ft-opt %s --split-input-file '--ftx-join-transfers=bucket-cap-mb=1 reduce-bucket-mb=1 gather-bucket-mb=1' --ftx-verify-schedule | FileCheck %s --check-prefix=ALL

// Gradients that are reduced in their place: the first waits for the second, 8192 bytes are 0.0078 MiB, and the third
// begins a bucket of its own. Its wait is the one that remains.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
ft.unit @c {elements = 1024 : i64}
%ga = ftx.buffer "ga" gradients unit_full(@a, 4) persistent
%gb = ftx.buffer "gb" gradients unit_full(@b, 4) persistent
%gc = ftx.buffer "gc" gradients unit_full(@c, 4) persistent
// CHECK-LABEL: ftx.program @in_place
// NONE-LABEL: ftx.program @in_place
// ALL-LABEL: ftx.program @in_place
ftx.program @in_place {
  // CHECK-NEXT: "backward" on compute ins() outs(%ga
  // CHECK-NEXT: "backward" on compute ins() outs(%gb
  // CHECK-NEXT: %[[AB:.*]] = ftx.start all_reduce on reduce after compute over replica @a from (%ga : whole f32, %gb : whole f32) to ()
  // CHECK-NEXT: ftx.wait %[[AB]] on compute
  // CHECK-NEXT: "backward" on compute ins() outs(%gc
  // CHECK-NEXT: ftx.start all_reduce {{.*}} @c from (%gc : whole f32) to ()
  // NONE: @a from (%ga : whole f32) to ()
  // NONE: @b from (%gb : whole f32) to ()
  // NONE: @c from (%gc : whole f32) to ()
  // ALL: "backward" on compute ins() outs(%gc
  // ALL-NEXT: ftx.start all_reduce {{.*}} from (%ga : whole f32, %gb : whole f32, %gc : whole f32) to ()
  // ALL-NEXT: ftx.wait
  ftx.kernel "backward" on compute ins() outs(%ga : whole f32)
  %ta = ftx.start all_reduce on reduce after compute over replica @a from (%ga : whole f32) to () {phase = "backward"}
  ftx.wait %ta on compute
  ftx.kernel "backward" on compute ins() outs(%gb : whole f32)
  %tb = ftx.start all_reduce on reduce after compute over replica @b from (%gb : whole f32) to () {phase = "backward"}
  ftx.wait %tb on compute
  ftx.kernel "backward" on compute ins() outs(%gc : whole f32)
  %tc = ftx.start all_reduce on reduce after compute over replica @c from (%gc : whole f32) to () {phase = "backward"}
  ftx.wait %tc on compute
}

// -----

// What is read before the bucket is full is not delayed; another type or axis is no part of it.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
ft.unit @c {elements = 1024 : i64}
%ga = ftx.buffer "ga" gradients unit_full(@a, 4) persistent
%gb = ftx.buffer "gb" gradients unit_full(@b, 4) persistent
%gc = ftx.buffer "gc" gradients unit_full(@c, 2) persistent
// ALL-LABEL: ftx.program @apart
ftx.program @apart {
  // ALL: @a from (%ga : whole f32) to ()
  // ALL: "use"
  // ALL: over replica @b from (%gb : whole f32) to ()
  // ALL: over world @b from (%gb : whole f32) to ()
  // ALL: @c from (%gc : whole bf16) to ()
  %ta = ftx.start all_reduce on reduce after compute over replica @a from (%ga : whole f32) to () {phase = "backward"}
  ftx.wait %ta on compute
  ftx.kernel "use" on compute ins(%ga : whole f32) outs()
  %tb = ftx.start all_reduce on reduce after compute over replica @b from (%gb : whole f32) to () {phase = "backward"}
  ftx.wait %tb on compute
  %tx = ftx.start all_reduce on reduce after compute over world @b from (%gb : whole f32) to () {phase = "backward"}
  ftx.wait %tx on compute
  %tc = ftx.start all_reduce on reduce after compute over replica @c from (%gc : whole bf16) to () {phase = "backward"}
  ftx.wait %tc on compute
}

// -----

// Staged gradients hold memory, so they have a cap of their own; units are gathered with the one before.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%pa = ftx.buffer "pa" parameters unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
%ga = ftx.buffer "ga" gradients unit_slice(@a, 4) persistent
%gb = ftx.buffer "gb" gradients unit_slice(@b, 4) persistent
// CHECK-LABEL: ftx.program @staged
// ALL-LABEL: ftx.program @staged
ftx.program @staged {
  // CHECK: all_gather {{.*}} @a from (%pa : whole f32) to (%fa : whole f32)
  // CHECK: reduce_scatter {{.*}} @a from (%sa : whole f32) to (%ga : whole f32)
  // CHECK: all_gather {{.*}} @b from (%pb : whole f32) to (%fb : whole f32)
  // CHECK: reduce_scatter {{.*}} @b from (%sb : whole f32) to (%gb : whole f32)
  // ALL: %[[G:.*]] = ftx.start all_gather {{.*}} from (%pa : whole f32, %pb : whole f32) to (%fa : whole f32, %fb : whole f32)
  // ALL-NEXT: ftx.wait %[[G]] on compute
  // ALL: "backward" on compute ins(%fa
  // ALL-NEXT: "backward" on compute ins(%fb
  // ALL-NEXT: %[[R:.*]] = ftx.start reduce_scatter {{.*}} from (%sa : whole f32, %sb : whole f32) to (%ga : whole f32, %gb : whole f32)
  // ALL-NEXT: ftx.wait %[[R]] on compute
  %sa = ftx.buffer "sa" staging unit_full(@a, 4)
  %sb = ftx.buffer "sb" staging unit_full(@b, 4)
  %fa = ftx.buffer "fa" gathered unit_full(@a, 4)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%pa : whole f32) to (%fa : whole f32) {phase = "backward"}
  ftx.wait %ta on compute
  ftx.kernel "backward" on compute ins(%fa : whole f32) outs(%sa : whole f32)
  %ra = ftx.start reduce_scatter on reduce after compute over shard @a from (%sa : whole f32) to (%ga : whole f32) {phase = "backward"}
  ftx.wait %ra on compute
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32) {phase = "backward"}
  ftx.wait %tb on compute
  ftx.kernel "backward" on compute ins(%fb : whole f32) outs(%sb : whole f32)
  %rb = ftx.start reduce_scatter on reduce after compute over shard @b from (%sb : whole f32) to (%gb : whole f32) {phase = "backward"}
  ftx.wait %rb on compute
}
