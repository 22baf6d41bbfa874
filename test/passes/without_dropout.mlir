// RUN: ft-opt %s --ft-make-eval-step --ft-make-sample-step | FileCheck %s

// A composite with dropout has one variant without, of whatever name is free, which all programs share.

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// CHECK: func.func private @f(
// CHECK: func.func private @f.eval(
// CHECK-NEXT: ft.scale
func.func private @f(%x: tensor<2x3x8xf32>, %rng: tensor<3xi64>) -> tensor<2x3x8xf32> attributes {ft.composite} {
  %y = ft.dropout %x, %rng rate 0.5 stream 0 : tensor<2x3x8xf32>, tensor<3xi64>
  return %y : tensor<2x3x8xf32>
}
func.func private @f.eval(%x: tensor<2x3x8xf32>, %rng: tensor<3xi64>) -> tensor<2x3x8xf32> attributes {ft.composite} {
  %y = ft.scale %x, 1000.0 : tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK: func.func @eval_step
// CHECK: ft.call @[[VARIANT:f.eval_[0-9]+]](
// CHECK: func.func private @[[VARIANT]](
// CHECK-SAME: ft.without_dropout_of = @f
// CHECK-NOT: ft.without_dropout_of
// CHECK: func.func @sample_step
// CHECK: ft.call @[[VARIANT]](
func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  %rng = ft.input "rng" : tensor<3xi64>
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %y = ft.call @f(%x, %rng) {layer = "head"} : (tensor<2x3x8xf32>, tensor<3xi64>) -> tensor<2x3x8xf32>
  %z = ft.matmul %y, %w transpose_b {layer = "head"} : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %loss = ft.cross_entropy %z, %targets {layer = "head"} : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
