// RUN: ft-opt %s --ft-accumulate-in-place | FileCheck %s
// RUN: ft-opt %s --ft-accumulate-in-place --ft-form-clusters --ft-lower-to-ftx --ftx-verify-schedule | FileCheck %s --check-prefix=LOWER

// Ops that make gradients begin with the sum: a product, a chain of a table's gradients, a sum over rows by way of an addition behind it. A zero leaves it
// as it is. No kernel goes over them again but that which takes the sum.

ft.unit @u {compute = bf16, elements = 6144 : i64, reduce = bf16, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole>}
ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "u", offset = 0 : i64, unit = @u}
ft.parameter @b : tensor<4xf32> = #ft.init<constant, 0.0> {layer = "u", offset = 1024 : i64, unit = @u}
ft.parameter @e : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "u", offset = 2048 : i64, unit = @u}
ft.parameter @z : tensor<4xf32> = #ft.init<constant, 0.0> {layer = "u", offset = 3072 : i64, unit = @u}
ft.parameter @t : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "u", offset = 4096 : i64, unit = @u}
ft.parameter @s : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "u", offset = 5120 : i64, unit = @u}

// CHECK-LABEL: func.func @train_micro
// LOWER-LABEL: ftx.program @train_micro
func.func @train_micro(%x: tensor<6x8xbf16> {ft.input = "x"}, %dy: tensor<6x4xbf16> {ft.input = "dy"}, %ids: tensor<6xi32> {ft.input = "ids"}) {
  // CHECK: %[[SUM:.*]] = ft.accumulator "u" : !ft.flat<@u, f32>
  // CHECK-DAG: %[[W:.*]] = ft.view %[[SUM]][@w] : !ft.flat<@u, f32> -> tensor<8x4xf32>
  // CHECK-DAG: %[[B:.*]] = ft.view %[[SUM]][@b]
  // CHECK-DAG: %[[E:.*]] = ft.view %[[SUM]][@e]
  // CHECK-DAG: %[[Z:.*]] = ft.view %[[SUM]][@z]
  // CHECK-DAG: %[[T:.*]] = ft.view %[[SUM]][@t]
  // CHECK-DAG: %[[S:.*]] = ft.view %[[SUM]][@s]
  // CHECK: %[[DW:.*]] = ft.matmul %{{.*}}, %{{.*}} into %[[W]] transpose_a
  // LOWER: "matmul" on compute ins({{.*}}, %u.accumulated : tensor<8x4xf32>) outs(%u.accumulated : tensor<8x4xf32>)
  %dw = ft.matmul %x, %dy transpose_a {layer = "u", phase = "backward"} : (tensor<6x8xbf16>, tensor<6x4xbf16>) -> tensor<8x4xf32>
  // CHECK: %[[DB0:.*]] = ft.reduce "sum"
  // CHECK-NEXT: %[[DB:.*]] = ft.add %[[DB0]], %[[B]] {layer = "u", phase = "backward"} : tensor<4xf32>, tensor<4xf32>
  // LOWER: "cluster" on compute ins({{.*}}%u.accumulated[4096] : tensor<4xf32>) outs(%u.accumulated[4096] : tensor<4xf32>)
  %db = ft.reduce "sum" %dy over [0] {layer = "u", phase = "backward"} : tensor<6x4xbf16> -> tensor<4xf32>
  // CHECK: %[[DE0:.*]] = ft.embedding_grad %{{.*}}, %{{.*}} into %[[E]]
  // CHECK: %[[DE:.*]] = ft.embedding_grad %{{.*}}, %{{.*}} into %[[DE0]]
  // LOWER: "embedding_grad" on compute ins({{.*}}, %u.accumulated[8192] : tensor<16x8xf32>) outs(%u.accumulated[8192] : tensor<16x8xf32>)
  // LOWER: "embedding_grad" on compute ins({{.*}}, %u.accumulated[8192] : tensor<16x8xf32>) outs(%u.accumulated[8192] : tensor<16x8xf32>)
  %de0 = ft.embedding_grad %ids, %x {layer = "u", phase = "backward"} : (tensor<6xi32>, tensor<6x8xbf16>) -> tensor<16x8xf32>
  %de = ft.embedding_grad %ids, %x into %de0 {layer = "u", phase = "backward"} : (tensor<6xi32>, tensor<6x8xbf16>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %dz = ft.fill 0.0 {layer = "u", phase = "backward"} : tensor<4xf32>
  // What two read is made apart.
  // CHECK: %[[TWO:.*]] = ft.matmul %{{.*}}, %{{.*}} transpose_a
  // CHECK-DAG: %[[DT:.*]] = ft.add %[[TWO]], %[[T]]
  // CHECK-DAG: %[[DS:.*]] = ft.add %[[TWO]], %[[S]]
  %two = ft.matmul %x, %dy transpose_a {layer = "u", phase = "backward"} : (tensor<6x8xbf16>, tensor<6x4xbf16>) -> tensor<8x4xf32>
  // CHECK: %[[PACK:.*]] = ft.pack %[[DW]], %[[DB]], %[[DE]], %[[Z]], %[[DT]], %[[DS]] at
  // CHECK-NEXT: ft.accumulate %[[PACK]] into "u" in_place {layer = "u", phase = "backward"} : !ft.flat<@u, f32>
  // LOWER-NOT: "accumulate"
  // LOWER-NOT: "copy"
  // LOWER-NOT: "zero_padding"
  %g = ft.pack %dw, %db, %de, %dz, %two, %two at [@w, @b, @e, @z, @t, @s] {layer = "u", phase = "backward"}
    : (tensor<8x4xf32>, tensor<4xf32>, tensor<16x8xf32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> !ft.flat<@u, f32>
  ft.accumulate %g into "u" {layer = "u", phase = "backward"} : !ft.flat<@u, f32>
  return
}

// CHECK-LABEL: func.func @train_step
// LOWER-LABEL: ftx.program @train_step
func.func @train_step(%x: tensor<6x8xbf16> {ft.input = "x"}, %dy: tensor<6x4xbf16> {ft.input = "dy"}, %ids: tensor<6xi32> {ft.input = "ids"}) {
  // CHECK: ft.matmul %{{.*}}, %{{.*}} into %{{.*}} transpose_a
  %dw = ft.matmul %x, %dy transpose_a {layer = "u", phase = "backward"} : (tensor<6x8xbf16>, tensor<6x4xbf16>) -> tensor<8x4xf32>
  %dz = ft.fill 0.0 {layer = "u", phase = "backward"} : tensor<4xf32>
  %de = ft.fill 0.0 {layer = "u", phase = "backward"} : tensor<16x8xf32>
  %ds = ft.fill 0.0 {layer = "u", phase = "backward"} : tensor<8x4xf32>
  %g = ft.pack %dw, %dz, %de, %dz, %ds, %ds at [@w, @b, @e, @z, @t, @s] {layer = "u", phase = "backward"}
    : (tensor<8x4xf32>, tensor<4xf32>, tensor<16x8xf32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> !ft.flat<@u, f32>
  // CHECK: ft.accumulated %{{.*}} from "u" in_place {layer = "u", phase = "backward"} : !ft.flat<@u, f32> -> !ft.flat<@u, bf16>
  // LOWER: "accumulated" on compute ins(none, %u.accumulated : whole f32) outs(%u.gradients : whole bf16, %u.accumulated : whole f32)
  %all = ft.accumulated %g from "u" {layer = "u", phase = "backward"} : !ft.flat<@u, f32> -> !ft.flat<@u, bf16>
  %r = ft.all_reduce %all over replica : !ft.flat<@u, bf16>
  return
}
