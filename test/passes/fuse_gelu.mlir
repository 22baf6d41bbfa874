// RUN: ft-opt %s --split-input-file --ft-fuse-gelu | FileCheck %s

// Backward reads the product: it is the second result. What recomputation chose for one of the two is not said of both.
// CHECK-LABEL: @kept
// CHECK-SAME:    %[[A:[^:]+]]: tensor<2x3x4xbf16>, %[[W:[^:]+]]: tensor<4x8xbf16>, %[[BIAS:[^:]+]]: tensor<8xbf16>
func.func @kept(%a: tensor<2x3x4xbf16>, %w: tensor<4x8xbf16>, %bias: tensor<8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) {
  // CHECK-NEXT: %[[R:.*]], %[[X:.*]] = ft.matmul_gelu %[[A]], %[[W]] bias %[[BIAS]] {layer = "h.0", phase = "forward"} : (tensor<2x3x4xbf16>, tensor<4x8xbf16>, tensor<8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>)
  // CHECK-NEXT: return %[[R]], %[[X]]
  %x = ft.matmul %a, %w bias %bias {layer = "h.0", phase = "forward", remat = "keep"} : (tensor<2x3x4xbf16>, tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<2x3x8xbf16>
  %r = ft.gelu %x approximate "tanh" {layer = "h.0", phase = "forward", remat = "recompute"} : tensor<2x3x8xbf16>
  return %r, %x : tensor<2x3x8xbf16>, tensor<2x3x8xbf16>
}

// -----

// Nobody else reads the product, as in an evaluation; an op without kernel may stand between.
ft.unit @h {elements = 1024 : i64}
// CHECK-LABEL: @alone
func.func @alone(%a: tensor<3x4xf32>, %w: tensor<8x4xf32>, %u: !ft.flat<@h, f32>) -> tensor<3x8xf32> {
  // CHECK-NEXT: %[[R:.*]] = ft.matmul_gelu %{{.*}}, %{{.*}} transpose_b : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  // CHECK-NEXT: ft.release
  // CHECK-NEXT: return %[[R]]
  %x = ft.matmul %a, %w transpose_b : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  ft.release %u : !ft.flat<@h, f32>
  %r = ft.gelu %x approximate "tanh" : tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// Other products, another form, a kernel between that would see both results alive, another phase: recomputed from what was kept.
// CHECK-LABEL: @apart
// CHECK-NOT: ft.matmul_gelu
func.func @apart(%a: tensor<8x4xf32>, %w: tensor<4x8xf32>, %t: tensor<8x8xf32>, %acc: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = ft.matmul %a, %w : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %erf = ft.gelu %0 approximate "none" : tensor<8x8xf32>
  %1 = ft.matmul %a, %t transpose_a : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %sum = ft.gelu %1 approximate "tanh" : tensor<4x8xf32>
  %2 = ft.matmul %w, %t into %acc : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %continued = ft.gelu %2 approximate "tanh" : tensor<4x8xf32>
  %3 = ft.matmul %a, %w : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %4 = ft.scale %3, 2.0 : tensor<8x8xf32>
  %between = ft.gelu %3 approximate "tanh" : tensor<8x8xf32>
  %5 = ft.matmul %4, %between {phase = "forward"} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %again = ft.gelu %5 approximate "tanh" {phase = "recompute"} : tensor<8x8xf32>
  return %erf, %sum, %continued, %between, %again : tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Where the product stood: the gradient of the weight may come between.
// CHECK-LABEL: @gradient
// CHECK-SAME:    %[[DY:[^:]+]]: tensor<3x4xf16>, %[[W:[^:]+]]: tensor<8x4xf16>, %[[X:[^:]+]]: tensor<3x8xf16>, %[[H:[^:]+]]: tensor<3x8xf16>
func.func @gradient(%dy: tensor<3x4xf16>, %w: tensor<8x4xf16>, %x: tensor<3x8xf16>, %h: tensor<3x8xf16>) -> (tensor<3x8xf16>, tensor<8x4xf16>) {
  // CHECK-NEXT: %[[DX:.*]] = ft.matmul_gelu_grad %[[DY]], %[[W]] at %[[X]] transpose_b {layer = "h.0", phase = "backward"} : tensor<3x4xf16>, tensor<8x4xf16>, tensor<3x8xf16>
  // CHECK-NEXT: %[[DW:.*]] = ft.matmul %[[H]], %[[DY]] transpose_a
  // CHECK-NEXT: return %[[DX]], %[[DW]]
  %dh = ft.matmul %dy, %w transpose_b {layer = "h.0", phase = "backward"} : (tensor<3x4xf16>, tensor<8x4xf16>) -> tensor<3x8xf16>
  %dw = ft.matmul %h, %dy transpose_a {layer = "h.0", phase = "backward"} : (tensor<3x8xf16>, tensor<3x4xf16>) -> tensor<8x4xf16>
  %dx = ft.gelu_grad %dh, %x approximate "tanh" {layer = "h.0", phase = "backward"} : tensor<3x8xf16>
  return %dx, %dw : tensor<3x8xf16>, tensor<8x4xf16>
}

// -----

// x is computed only after the product; others read the product; another form; a bias.
// CHECK-LABEL: @gradient_apart
// CHECK-NOT: ft.matmul_gelu_grad
func.func @gradient_apart(%dy: tensor<3x4xf32>, %w: tensor<4x8xf32>, %z: tensor<3x8xf32>, %b: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
  %0 = ft.matmul %dy, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %x = ft.scale %z, 2.0 : tensor<3x8xf32>
  %late = ft.gelu_grad %0, %x approximate "tanh" : tensor<3x8xf32>
  %1 = ft.matmul %dy, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %shared = ft.gelu_grad %1, %x approximate "tanh" : tensor<3x8xf32>
  %2 = ft.matmul %dy, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %erf = ft.gelu_grad %2, %x approximate "none" : tensor<3x8xf32>
  %3 = ft.matmul %dy, %w bias %b : (tensor<3x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %biased = ft.gelu_grad %3, %x approximate "tanh" : tensor<3x8xf32>
  return %late, %shared, %1, %erf, %biased : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
}
