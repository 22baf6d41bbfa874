// RUN: ft-opt %s --split-input-file '--ftx-schedule-by-cost=target=cpu shard=2' --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file '--ftx-schedule-by-cost=target=cpu shard=2 memory-budget=12000000' --ftx-verify-schedule | FileCheck %s --check-prefix=TIGHT
// RUN: ft-opt %s --split-input-file '--ftx-schedule-by-cost=target=cpu' --ftx-verify-schedule | FileCheck %s --check-prefix=ALONE
// RUN: not ft-opt %s --split-input-file '--ftx-schedule-by-cost=target=abacus' 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: unknown target 'abacus'; one of a10, a100

// 4 MiB over 2 ranks take 0.86 ms on target cpu, each kernel 1 ms: the gather of @b begins one kernel ahead of its use and
// not two; when memory allows none of it, it stays. On one rank it is a copy, which
// is worth as much.

ft.unit @a {elements = 1048576 : i64}
ft.unit @b {elements = 1048576 : i64}
%pa = ftx.buffer "pa" parameters unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @late
// TIGHT-LABEL: ftx.program @late
// ALONE-LABEL: ftx.program @late
ftx.program @late {
  // CHECK: all_gather {{.*}} @a {{.*}} {phase = "forward", reason = "first use"}
  // CHECK: "work" on compute {{.*}}layer = "first"
  // CHECK-NEXT: "work" on compute {{.*}}layer = "second"
  // CHECK-NEXT: ftx.buffer "fb"
  // CHECK-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b {{.*}}reason = "hidden behind 1 ms of computation, from third forward on"
  // CHECK-NEXT: "work" on compute {{.*}}layer = "third"
  // CHECK-NEXT: ftx.release %fa
  // CHECK-NEXT: ftx.wait %[[B]] on compute
  // TIGHT: "work" on compute {{.*}}layer = "third"
  // TIGHT-NEXT: ftx.release %fa
  // TIGHT-NEXT: ftx.buffer "fb"
  // TIGHT-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b {{.*}}reason = "memory: {{[0-9]+}} bytes over the budget if earlier"
  // TIGHT-NEXT: ftx.wait %[[B]] on compute
  // ALONE: "work" on compute {{.*}}layer = "second"
  // ALONE: %[[B:.*]] = ftx.start all_gather {{.*}} @b {{.*}}reason = "hidden behind 1 ms of computation, from third forward on"
  // ALONE-NEXT: "work" on compute {{.*}}layer = "third"
  // ALONE: ftx.wait %[[B]] on compute
  %fa = ftx.buffer "fa" gathered unit_full(@a, 4)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%pa : whole f32) to (%fa : whole f32) {phase = "forward"}
  ftx.wait %ta on compute
  ftx.kernel "work" on compute ins(%fa : tensor<4xf32>) outs(%x : whole f32) {flops = 139720000 : i64, layer = "first", phase = "forward"}
  ftx.kernel "work" on compute ins(%fa : tensor<4xf32>) outs(%x : whole f32) {flops = 139720000 : i64, layer = "second", phase = "forward"}
  ftx.kernel "work" on compute ins(%fa : tensor<4xf32>) outs(%x : whole f32) {flops = 139720000 : i64, layer = "third", phase = "forward"}
  ftx.release %fa
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32) {phase = "forward"}
  ftx.wait %tb on compute
  ftx.kernel "work" on compute ins(%fb : tensor<4xf32>) outs(%x : whole f32) {flops = 139720000 : i64, layer = "fourth", phase = "forward"}
}

// -----

// Two gathers in a row need the stream one after the other, so the first begins earlier than its own use asks for.

ft.unit @a {elements = 1048576 : i64}
ft.unit @b {elements = 1048576 : i64}
%pa = ftx.buffer "pa" parameters unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @stream
ftx.program @stream {
  // CHECK-NEXT: ftx.buffer "fa"
  // CHECK-NEXT: ftx.start all_gather {{.*}} @a {{.*}}reason = "hidden behind 2 ms of computation, from first forward on; so early because the stream is needed by the next"
  // CHECK-NEXT: "work" on compute {{.*}}layer = "first"
  // CHECK-NEXT: ftx.buffer "fb"
  // CHECK-NEXT: ftx.start all_gather {{.*}} @b
  // CHECK-NEXT: "work" on compute {{.*}}layer = "second"
  // CHECK-NEXT: ftx.wait
  // CHECK-NEXT: "work" on compute {{.*}}layer = "short"
  // CHECK-NEXT: ftx.wait
  ftx.kernel "work" on compute ins() outs(%x : whole f32) {flops = 139720000 : i64, layer = "first", phase = "forward"}
  ftx.kernel "work" on compute ins() outs(%x : whole f32) {flops = 139720000 : i64, layer = "second", phase = "forward"}
  %fa = ftx.buffer "fa" gathered unit_full(@a, 4)
  %ta = ftx.start all_gather on gather after compute over shard @a from (%pa : whole f32) to (%fa : whole f32) {phase = "forward"}
  ftx.wait %ta on compute
  ftx.kernel "work" on compute ins(%fa : tensor<4xf32>) outs(%x : whole f32) {flops = 1000 : i64, layer = "short", phase = "forward"}
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32) {phase = "forward"}
  ftx.wait %tb on compute
  ftx.kernel "work" on compute ins(%fb : tensor<4xf32>) outs(%x : whole f32) {flops = 139720000 : i64, layer = "fourth", phase = "forward"}
}

// -----

// A reduction is waited for where it is done, or where its result is needed; what is fetched meanwhile says nothing about that.

ft.unit @a {elements = 1048576 : i64}
ft.unit @b {elements = 1048576 : i64}
%ga = ftx.buffer "ga" gradients unit_slice(@a, 4) persistent
%pb = ftx.buffer "pb" parameters unit_slice(@b, 4) persistent
%x = ftx.buffer "x" io constant(4096) persistent
// CHECK-LABEL: ftx.program @reduction
ftx.program @reduction {
  // CHECK: %[[R:.*]] = ftx.start reduce_scatter {{.*}}reason = "once it is ready, for 0.859 ms; waited for where it is done by then"
  // CHECK-NEXT: ftx.buffer "fb"
  // CHECK-NEXT: %[[B:.*]] = ftx.start all_gather {{.*}} @b
  // CHECK-NEXT: "work" on compute {{.*}}layer = "second"
  // CHECK-NEXT: ftx.wait %[[R]] on compute
  // CHECK-NEXT: ftx.wait %[[B]] on compute
  // CHECK-NEXT: "work" on compute {{.*}}layer = "third"
  // CHECK-NEXT: "optimizer"
  %sa = ftx.buffer "sa" staging unit_full(@a, 4)
  ftx.kernel "work" on compute ins() outs(%sa : whole f32) {flops = 139720000 : i64, layer = "first", phase = "backward"}
  %ra = ftx.start reduce_scatter on reduce after compute over shard @a from (%sa : whole f32) to (%ga : whole f32) {phase = "backward"}
  ftx.wait %ra on compute
  ftx.kernel "work" on compute ins() outs(%x : whole f32) {flops = 139720000 : i64, layer = "second", phase = "backward"}
  %fb = ftx.buffer "fb" gathered unit_full(@b, 4)
  %tb = ftx.start all_gather on gather after compute over shard @b from (%pb : whole f32) to (%fb : whole f32) {phase = "backward"}
  ftx.wait %tb on compute
  ftx.kernel "work" on compute ins(%fb : tensor<4xf32>) outs(%x : whole f32) {flops = 139720000 : i64, layer = "third", phase = "backward"}
  ftx.kernel "optimizer" on compute ins(%ga : whole f32) outs()
}
