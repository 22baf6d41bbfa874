// RUN: ft-opt %s --ft-outline-composites --ft-autodiff --ft-verify-autodiff | FileCheck %s
// Differentiation is safe under what MLIR does to any graph.
// RUN: ft-opt %s --ft-outline-composites --ft-autodiff --cse --canonicalize --ft-verify-autodiff | FileCheck %s

// A tied embedding, a bias, a residual, a frozen and an unused parameter.
ft.parameter @wte : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "wte"}
ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
ft.parameter @b : tensor<8xf32> = #ft.init<constant, 0.0> {layer = "h.0"}
ft.parameter @unused : tensor<8xf32> = #ft.init<constant, 0.0> {layer = "h.1"}
ft.parameter @cold : tensor<8xf32> = #ft.init<constant, 0.0> {frozen, layer = "h.0"}

// CHECK-NOT:   @forward
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[TOKENS:[^:]+]]: tensor<2x3xi32>, %[[TARGETS:[^:]+]]: tensor<2x3xi32>) -> tensor<f32>
func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  // CHECK: %[[WTE:.*]] = ft.get @wte {layer = "wte", phase = "forward"}
  %wte = ft.get @wte {layer = "wte"} : tensor<16x8xf32>
  // CHECK: %[[X:.*]] = ft.embedding
  %x = ft.embedding %tokens, %wte {layer = "wte"} : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  // CHECK: %[[W:.*]] = ft.get @w {layer
  %w = ft.get @w {layer = "h.0"} : tensor<8x8xf32>
  %b = ft.get @b {layer = "h.0"} : tensor<8xf32>
  // CHECK: %[[COLD:.*]] = ft.get @cold
  %cold = ft.get @cold {layer = "h.0"} : tensor<8xf32>
  %y = ft.matmul %x, %w bias %b {layer = "h.0"} : (tensor<2x3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %z = ft.add %x, %y {layer = "h.0"} : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  // CHECK: %[[M:.*]] = ft.mul
  %m = ft.mul %z, %cold {layer = "h.0"} : tensor<2x3x8xf32>, tensor<8xf32>
  // CHECK: %[[HEAD:.*]] = ft.get @wte {layer = "head"
  %head = ft.get @wte {layer = "head"} : tensor<16x8xf32>
  // CHECK: %[[LOGITS:.*]] = ft.matmul {{.*}}transpose_b {layer = "head", phase = "forward"}
  %logits = ft.matmul %m, %head transpose_b {layer = "head"} : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  // CHECK: %[[LOSS:.*]] = ft.call @cross_entropy(
  %loss = ft.cross_entropy %logits, %targets {layer = "head"} : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>

  // CHECK: %[[ONE:.*]] = ft.fill 1.0 {layer = "head", phase = "backward"} : tensor<f32>
  // CHECK: %[[DLOGITS:.*]] = ft.call @cross_entropy.grad(%[[LOGITS]], %[[TARGETS]], %[[ONE]]) {layer = "head", phase = "backward"}
  // The weight's gradient comes first, so that the activation can die before its gradient is made.
  // CHECK: %[[DHEAD:.*]] = ft.matmul %[[DLOGITS]], %[[M]] transpose_a
  // CHECK: %[[DM:.*]] = ft.matmul %[[DLOGITS]], %[[HEAD]] {
  // Nothing is computed for the frozen parameter alone.
  // CHECK-NOT: ft.mul %[[DM]], %{{.*}}tensor<2x3x8xf32>, tensor<2x3x8xf32>
  // CHECK: %[[DZ:.*]] = ft.mul %[[DM]], %[[COLD]] {layer = "h.0", phase = "backward"}
  // CHECK: %[[DB:.*]] = ft.reduce "sum" %[[DZ]] over [0, 1]
  // CHECK: %[[DW:.*]] = ft.matmul %[[X]], %[[DZ]] transpose_a {layer
  // The residual's gradient is still read by the product: it is added, not accumulated into.
  // CHECK: %[[DX1:.*]] = ft.matmul %[[DZ]], %[[W]] transpose_b {layer
  // CHECK: %[[DX:.*]] = ft.add %[[DZ]], %[[DX1]]
  // CHECK: ft.gradient @w, %[[DW]] {layer = "h.0", phase = "backward"}
  // CHECK: ft.gradient @b, %[[DB]]
  // The tied table's sum goes on where the head left it.
  // CHECK: %[[DWTE:.*]] = ft.embedding_grad %[[TOKENS]], %[[DX]] into %[[DHEAD]] {layer = "wte", phase = "backward"}
  // CHECK: ft.gradient @wte, %[[DWTE]]
  // CHECK: %[[ZERO:.*]] = ft.fill 0.0 {layer = "h.1", phase = "backward"} : tensor<8xf32>
  // CHECK: ft.gradient @unused, %[[ZERO]]
  // CHECK-NOT: @cold
  // CHECK: return %[[LOSS]]
  return %loss : tensor<f32>
}
