// RUN: ftc compile %s --strategy=full_shard --dump=autodiff | FileCheck %s
// RUN: ftc compile %s --strategy=full_shard --dump=autodiff | FileCheck %s --check-prefix=INPUTS
// RUN: ftc compile %s --strategy=full_shard --mixed-precision=bf16 --dump=precision | FileCheck %s --check-prefix=BF16
// RUN: ftc compile %s --strategy=full_shard --dump=parse > %t.mlir
// RUN: ftc compile %t.mlir --strategy=full_shard --dump=autodiff | FileCheck %s
// RUN: ftc compile %s --strategy=full_shard --mixed-precision=bf16 --dump | FileCheck %s --check-prefix=PORTS

// Inputs are known by name, in any order; what only a named output needs is computed in evaluation alone, and keeps
// training from nothing: its head and loss are one op.

// INPUTS: ft.inputs = [
// INPUTS-NEXT: {constant = true, counted = false, ids_below = 0 : i64, may_be_left_out = false, name = "shift", type = tensor<8xf32>},
// INPUTS-NEXT: {constant = false, counted = true, ids_below = 4 : i64, may_be_left_out = true, name = "labels", type = tensor<2xi64>},
// INPUTS-NEXT: {constant = false, counted = false, ids_below = 0 : i64, may_be_left_out = false, name = "pixels", type = tensor<2x2x4xf32>},
// INPUTS-NEXT: {constant = false, counted = false, ids_below = 5 : i64, may_be_left_out = false, name = "groups", type = tensor<2x3xi32>}]

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %{{.*}}: tensor<8xf32> {ft.constant, ft.input = "shift"},
// CHECK-SAME: {ft.input = "groups"}) -> tensor<f32> {
// CHECK: ft.linear_cross_entropy_loss_grad
// CHECK-NOT: ft.argsort
// CHECK-NOT: ft.eq
// CHECK: return %{{.*}} : tensor<f32>
// CHECK-LABEL: func.func @eval_step(
// CHECK-SAME: -> (tensor<2xf32>, tensor<2xf32> {ft.output = "accuracy"}) {
// CHECK: %[[Y:.*]] = ft.matmul
// CHECK: %[[LOSS:.*]] = ft.call @cross_entropy(%[[Y]],
// CHECK: ft.argsort
// CHECK: %[[ACCURACY:.*]] = ft.scale
// CHECK: %[[A:.*]] = ft.loss_count %[[LOSS]], %[[IDS:.*]] :
// CHECK: %[[B:.*]] = ft.loss_count %[[ACCURACY]], %[[IDS]] :
// CHECK: return %[[A]], %[[B]]

// Floats of data are rounded once, where they are first read.
// BF16-LABEL: func.func @train_step(
// BF16: ft.copy %{{.*}} : tensor<2x2x4xf32> -> tensor<2x2x4xbf16>
// BF16-NEXT: ft.reshape

// PORTS-LABEL: ftx.program @eval_step
// PORTS: ftx.input "shift"
// PORTS: ftx.input "labels"
// PORTS: ftx.input "pixels"
// PORTS: ftx.input "groups"
// PORTS: ftx.output "loss_sum"
// PORTS: ftx.output "accuracy"

module {
  ft.parameter @w : tensor<4x8xf32> = #ft.init<normal, 0.1>
  ft.parameter @table : tensor<5x8xf32> = #ft.init<normal, 0.1>
  func.func private @look(%ids: tensor<2xi32>, %table: tensor<5x8xf32>) -> tensor<2x8xf32> attributes {ft.composite} {
    %rows = ft.embedding %ids, %table : (tensor<2xi32>, tensor<5x8xf32>) -> tensor<2x8xf32>
    return %rows : tensor<2x8xf32>
  }
  func.func @forward(%shift: tensor<8xf32> {ft.input = "shift", ft.constant}, %labels: tensor<2xi64> {ft.input = "labels"},
                     %pixels: tensor<2x2x4xf32> {ft.input = "pixels"}, %groups: tensor<2x3xi32> {ft.input = "groups"})
      -> (tensor<f32>, tensor<f32> {ft.output = "accuracy"}) {
    %w = ft.get @w : tensor<4x8xf32>
    %table = ft.get @table : tensor<5x8xf32>
    %x = ft.reshape %pixels : tensor<2x2x4xf32> -> tensor<2x8xf32>
    %first = ft.slice %groups at [0, 0] : tensor<2x3xi32> -> tensor<2x1xi32>
    %group = ft.reshape %first : tensor<2x1xi32> -> tensor<2xi32>
    %rows = ft.call @look(%group, %table) : (tensor<2xi32>, tensor<5x8xf32>) -> tensor<2x8xf32>
    %sum = ft.add %x, %rows : tensor<2x8xf32>, tensor<2x8xf32>
    %h = ft.add %sum, %shift : tensor<2x8xf32>, tensor<8xf32>
    %y = ft.matmul %h, %w transpose_b : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %ids = ft.convert %labels : tensor<2xi64> -> tensor<2xi32>
    %loss = ft.cross_entropy %y, %ids : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<f32>
    %order = ft.argsort %y descending : tensor<2x4xf32> -> tensor<2x1xi32>
    %best = ft.reshape %order : tensor<2x1xi32> -> tensor<2xi32>
    %same = ft.eq %best, %ids : tensor<2xi32>, tensor<2xi32>
    %hits = ft.convert %same : tensor<2xi1> -> tensor<2xf32>
    %count = ft.reduce "sum" %hits over [0] : tensor<2xf32> -> tensor<f32>
    %accuracy = ft.scale %count, 0.5 : tensor<f32>
    return %loss, %accuracy : tensor<f32>, tensor<f32>
  }
}
