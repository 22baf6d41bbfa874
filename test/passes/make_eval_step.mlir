// RUN: ft-opt %s --ft-make-eval-step | FileCheck %s
// RUN: not ft-opt %S/form_units.mlir --ft-make-eval-step 2>&1 | FileCheck %s --check-prefix=ABSENT

// The loss alone, weighted with the targets that count, without dropout; what it reads for dropout only is gone.

// ABSENT: error: there is no function @forward of one block that returns the loss

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// CHECK-LABEL: func.func @forward
// CHECK-SAME:    -> tensor<f32>
// CHECK:         ft.dropout
// CHECK-LABEL: func.func @eval_step
// CHECK-SAME:    (%[[TOKENS:.*]]: tensor<3xi32>, %[[TARGETS:.*]]: tensor<3xi32>) -> tensor<2xf32> {
// CHECK-NEXT:    %w = ft.get @w {phase = "forward"}
// CHECK-NEXT:    %[[X:.*]] = ft.embedding %[[TOKENS]], %w {layer = "head", phase = "forward"}
// CHECK-NEXT:    %[[LOSS:.*]] = ft.cross_entropy %[[X]], %[[TARGETS]] {layer = "head", phase = "forward"}
// CHECK-NEXT:    %[[SUM:.*]] = ft.loss_count %[[LOSS]], %[[TARGETS]] {layer = "head", phase = "forward"} : (tensor<f32>, tensor<3xi32>) -> tensor<2xf32>
// CHECK-NEXT:    return %[[SUM]] : tensor<2xf32>
func.func @forward(%tokens: tensor<3xi32>, %targets: tensor<3xi32>) -> tensor<f32> {
  %rng = ft.input "rng" : tensor<3xi64>
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<3xi32>, tensor<16x8xf32>) -> tensor<3x8xf32>
  %y = ft.dropout %x, %rng rate 0.1 stream 2 {layer = "head"} : tensor<3x8xf32>, tensor<3xi64>
  %z = ft.dropout %y, %rng rate 0.2 stream 3 {layer = "head"} : tensor<3x8xf32>, tensor<3xi64>
  %loss = ft.cross_entropy %z, %targets {layer = "head"} : (tensor<3x8xf32>, tensor<3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
