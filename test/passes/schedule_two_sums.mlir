// RUN: ft-opt %s --split-input-file --ftx-delay-second-sums --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file --ftx-delay-second-sums --ftx-overlap-collectives --ftx-verify-schedule | FileCheck %s --check-prefix=OVERLAP
// RUN: ft-opt %s --split-input-file --ftx-overlap-collectives --ftx-verify-schedule | FileCheck %s --check-prefix=ALONE

// A sum over replicas stands in front of the next sum over shards; the last one, which has none behind it, stays. Overlapped: the first
// sum runs beside backward of the next unit, the second and the next first beside that of the one after.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%ga = ftx.buffer "ga" gradients unit_slice(@a, 4) persistent
%gb = ftx.buffer "gb" gradients unit_slice(@b, 4) persistent
// CHECK-LABEL: ftx.program @train_step
// OVERLAP-LABEL: ftx.program @train_step
// ALONE-LABEL: ftx.program @train_step
ftx.program @train_step {
  %a = ftx.buffer "a" staging unit_full(@a, 4)
  %b = ftx.buffer "b" staging unit_full(@b, 4)
  // CHECK: "backward" {{.*}} outs(%a : whole f32)
  // CHECK-NEXT: %[[FIRST_A:.*]] = ftx.start reduce_scatter on reduce {{.*}} @a
  // CHECK-NEXT: ftx.wait %[[FIRST_A]] on compute
  // CHECK-NEXT: "backward" {{.*}} outs(%b : whole f32)
  // CHECK-NEXT: %[[SECOND_A:.*]] = ftx.start all_reduce on replica {{.*}} @a
  // CHECK-NEXT: ftx.wait %[[SECOND_A]] on compute
  // CHECK-NEXT: %[[FIRST_B:.*]] = ftx.start reduce_scatter on reduce {{.*}} @b
  // CHECK-NEXT: ftx.wait %[[FIRST_B]] on compute
  // CHECK-NEXT: %[[SECOND_B:.*]] = ftx.start all_reduce on replica {{.*}} @b
  // CHECK-NEXT: ftx.wait %[[SECOND_B]] on compute
  // CHECK-NEXT: "norm"
  // OVERLAP: "backward" {{.*}} outs(%a : whole f32)
  // OVERLAP-NEXT: %[[FIRST_A:.*]] = ftx.start reduce_scatter on reduce {{.*}} @a
  // OVERLAP-NEXT: "backward" {{.*}} outs(%b : whole f32)
  // OVERLAP-NEXT: ftx.wait %[[FIRST_A]] on compute
  // OVERLAP-NEXT: %[[SECOND_A:.*]] = ftx.start all_reduce on replica {{.*}} @a
  // OVERLAP-NEXT: %[[FIRST_B:.*]] = ftx.start reduce_scatter on reduce {{.*}} @b
  // OVERLAP-NEXT: ftx.wait %[[SECOND_A]] on compute
  // OVERLAP-NEXT: ftx.wait %[[FIRST_B]] on compute
  // OVERLAP-NEXT: %[[SECOND_B:.*]] = ftx.start all_reduce on replica {{.*}} @b
  // ALONE: %[[FIRST_A:.*]] = ftx.start reduce_scatter on reduce {{.*}} @a
  // ALONE-NEXT: ftx.wait %[[FIRST_A]] on compute
  // ALONE-NEXT: %[[SECOND_A:.*]] = ftx.start all_reduce on replica {{.*}} @a
  // ALONE-NEXT: "backward" {{.*}} outs(%b : whole f32)
  ftx.kernel "backward" on compute ins() outs(%a : whole f32)
  %fa = ftx.start reduce_scatter on reduce after compute over shard @a from (%a : whole f32) to (%ga : whole f32) {phase = "backward"}
  ftx.wait %fa on compute
  %sa = ftx.start all_reduce on replica after compute over replica @a from (%ga : whole f32) to () {phase = "backward"}
  ftx.wait %sa on compute
  ftx.kernel "backward" on compute ins() outs(%b : whole f32)
  %fb = ftx.start reduce_scatter on reduce after compute over shard @b from (%b : whole f32) to (%gb : whole f32) {phase = "backward"}
  ftx.wait %fb on compute
  %sb = ftx.start all_reduce on replica after compute over replica @b from (%gb : whole f32) to () {phase = "backward"}
  ftx.wait %sb on compute
  ftx.kernel "norm" on compute ins(%ga : whole f32, %gb : whole f32) outs()
}

// -----

// What is read before the next sum over shards is not delayed.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
%ga = ftx.buffer "ga" gradients unit_slice(@a, 4) persistent
%gb = ftx.buffer "gb" gradients unit_slice(@b, 4) persistent
// CHECK-LABEL: ftx.program @read_between
ftx.program @read_between {
  %a = ftx.buffer "a" staging unit_full(@a, 4)
  %b = ftx.buffer "b" staging unit_full(@b, 4)
  ftx.kernel "backward" on compute ins() outs(%a : whole f32)
  // CHECK: %[[FIRST_A:.*]] = ftx.start reduce_scatter on reduce {{.*}} @a
  // CHECK-NEXT: ftx.wait %[[FIRST_A]] on compute
  // CHECK-NEXT: ftx.start all_reduce on replica {{.*}} @a
  %fa = ftx.start reduce_scatter on reduce after compute over shard @a from (%a : whole f32) to (%ga : whole f32)
  ftx.wait %fa on compute
  %sa = ftx.start all_reduce on replica after compute over replica @a from (%ga : whole f32) to ()
  ftx.wait %sa on compute
  ftx.kernel "norm" on compute ins(%ga : whole f32) outs()
  ftx.kernel "backward" on compute ins() outs(%b : whole f32)
  %fb = ftx.start reduce_scatter on reduce after compute over shard @b from (%b : whole f32) to (%gb : whole f32)
  ftx.wait %fb on compute
  %sb = ftx.start all_reduce on replica after compute over replica @b from (%gb : whole f32) to ()
  ftx.wait %sb on compute
}
