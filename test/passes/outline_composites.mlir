// RUN: ft-opt %s --ft-outline-composites | FileCheck %s
// RUN: ft-opt %s --ft-outline-composites --ft-autodiff | FileCheck %s --check-prefix=GRAD
// Ops that are alike share a function, also those of other functions.

ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 1.0>
ft.parameter @q : tensor<2xf32> = #ft.init<constant, 1.0>

// CHECK: func.func private @routing
// CHECK: ft.call @softmax(
func.func private @routing(%x: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> attributes {ft.composite} {
  %y = ft.softmax %x : tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}
// CHECK-LABEL: @forward
// GRAD-LABEL: @train_step
func.func @forward(%tokens: tensor<1x3xi32>, %targets: tensor<1x3xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<8x4xf32>
  %q = ft.get @q : tensor<2xf32>
  %x = ft.embedding %tokens, %w : (tensor<1x3xi32>, tensor<8x4xf32>) -> tensor<1x3x4xf32>
  // CHECK: %[[A:.*]] = ft.call @routing
  %a = ft.call @routing(%x) : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  // CHECK: %[[B:.*]] = ft.call @softmax(%[[A]]) {layer = "h.0"} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %b = ft.softmax %a {layer = "h.0"} : tensor<1x3x4xf32>
  // CHECK: %[[C:.*]] = ft.call @qk_norm(%[[B]], %q) : (tensor<1x3x4xf32>, tensor<2xf32>) -> tensor<1x3x4xf32>
  %c = ft.qk_norm %b, %q heads 2 eps 1.0e-6 : tensor<1x3x4xf32>, tensor<2xf32>
  // Another number, another function.
  // CHECK: %[[D:.*]] = ft.call @qk_norm_0(%[[C]], %q)
  %d = ft.qk_norm %c, %q heads 2 eps 1.0e-5 : tensor<1x3x4xf32>, tensor<2xf32>
  %l = ft.matmul %d, %w transpose_b : (tensor<1x3x4xf32>, tensor<8x4xf32>) -> tensor<1x3x8xf32>
  %loss = ft.cross_entropy %l, %targets : (tensor<1x3x8xf32>, tensor<1x3xi32>) -> tensor<f32>
  // GRAD: ft.call @qk_norm_0.grad({{.*}}) parameter_grads [1]
  // GRAD: ft.call @qk_norm.grad({{.*}}) parameter_grads [1]
  // GRAD: ft.call @softmax.grad(
  // GRAD: ft.call @routing.grad(
  return %loss : tensor<f32>
}
// CHECK: func.func private @softmax(%[[X:.*]]: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> attributes {ft.composite, ft.origin = #ft.origin<body, "ft.softmax", {}>}
// CHECK: ft.stop_gradient
// CHECK: func.func private @qk_norm(
// CHECK: func.func private @qk_norm_0(
// Nothing flows through the largest, which is taken off.
// GRAD: func.func private @softmax.grad(
// GRAD-COUNT-1: ft.reduce "max"
// GRAD-NOT: ft.eq
// GRAD: return
