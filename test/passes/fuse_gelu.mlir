// RUN: ft-opt %s --split-input-file --ft-fuse-gelu | FileCheck %s

// Backward reads the product: it is the second result. What recomputation chose for one of the two is not said of both.
// CHECK-LABEL: @kept
// CHECK-SAME:    %[[A:[^:]+]]: tensor<2x3x4xbf16>, %[[W:[^:]+]]: tensor<4x8xbf16>, %[[BIAS:[^:]+]]: tensor<8xbf16>
func.func @kept(%a: tensor<2x3x4xbf16>, %w: tensor<4x8xbf16>, %bias: tensor<8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) {
  // CHECK-NEXT: %[[R:.*]], %[[X:.*]] = ft.matmul_gelu %[[A]], %[[W]] bias %[[BIAS]] then @gelu_2x3x8 {layer = "h.0", phase = "forward"} : (tensor<2x3x4xbf16>, tensor<4x8xbf16>, tensor<8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>)
  // CHECK-NEXT: return %[[R]], %[[X]]
  %x = ft.matmul %a, %w bias %bias {layer = "h.0", phase = "forward", remat = "keep"} : (tensor<2x3x4xbf16>, tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<2x3x8xbf16>
  %r = ft.call @gelu_2x3x8(%x) {layer = "h.0", phase = "forward", remat = "recompute"} : (tensor<2x3x8xbf16>) -> tensor<2x3x8xbf16>
  return %r, %x : tensor<2x3x8xbf16>, tensor<2x3x8xbf16>
}
func.func private @gelu_2x3x8(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "tanh"}>} {
  %y = ft.silu %x : tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Nobody else reads the product, as in an evaluation; an op without kernel may stand between.
ft.unit @h {elements = 1024 : i64}
// CHECK-LABEL: @alone
func.func @alone(%a: tensor<3x4xf32>, %w: tensor<8x4xf32>, %u: !ft.flat<@h, f32>) -> tensor<3x8xf32> {
  // CHECK-NEXT: %[[R:.*]] = ft.matmul_gelu %{{.*}}, %{{.*}} transpose_b then @gelu_3x8 : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  // CHECK-NEXT: ft.release
  // CHECK-NEXT: return %[[R]]
  %x = ft.matmul %a, %w transpose_b : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  ft.release %u : !ft.flat<@h, f32>
  %r = ft.call @gelu_3x8(%x) : (tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}
func.func private @gelu_3x8(%x: tensor<3x8xf32>) -> tensor<3x8xf32> attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "tanh"}>} {
  %y = ft.silu %x : tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// -----

// Other products, another form, a kernel between that would see both results alive, another phase: recomputed from what was kept.
// CHECK-LABEL: @apart
// CHECK-NOT: ft.matmul_gelu
func.func @apart(%a: tensor<8x4xf32>, %w: tensor<4x8xf32>, %t: tensor<8x8xf32>, %acc: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = ft.matmul %a, %w : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %erf = ft.call @gelu_erf_8x8(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = ft.matmul %a, %t transpose_a : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %sum = ft.call @gelu_4x8(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = ft.matmul %w, %t into %acc : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %continued = ft.call @gelu_4x8(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = ft.matmul %a, %w : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %4 = ft.scale %3, 2.0 : tensor<8x8xf32>
  %between = ft.call @gelu_8x8(%3) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = ft.matmul %4, %between {phase = "forward"} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %again = ft.call @gelu_8x8(%5) {phase = "recompute"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %erf, %sum, %continued, %between, %again : tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @gelu_erf_8x8(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "none"}>} {
  %y = ft.silu %x : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
func.func private @gelu_4x8(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "tanh"}>} {
  %y = ft.silu %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func private @gelu_8x8(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "tanh"}>} {
  %y = ft.silu %x : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// Where the product stood: the gradient of the weight may come between.
// CHECK-LABEL: @gradient
// CHECK-SAME:    %[[DY:[^:]+]]: tensor<3x4xf16>, %[[W:[^:]+]]: tensor<8x4xf16>, %[[X:[^:]+]]: tensor<3x8xf16>, %[[H:[^:]+]]: tensor<3x8xf16>
func.func @gradient(%dy: tensor<3x4xf16>, %w: tensor<8x4xf16>, %x: tensor<3x8xf16>, %h: tensor<3x8xf16>) -> (tensor<3x8xf16>, tensor<8x4xf16>) {
  // CHECK-NEXT: %[[DX:.*]] = ft.matmul_gelu_grad %[[DY]], %[[W]] at %[[X]] transpose_b then @gelu.grad {layer = "h.0", phase = "backward"} : tensor<3x4xf16>, tensor<8x4xf16>, tensor<3x8xf16>
  // CHECK-NEXT: %[[DW:.*]] = ft.matmul %[[H]], %[[DY]] transpose_a
  // CHECK-NEXT: return %[[DX]], %[[DW]]
  %dh = ft.matmul %dy, %w transpose_b {layer = "h.0", phase = "backward"} : (tensor<3x4xf16>, tensor<8x4xf16>) -> tensor<3x8xf16>
  %dw = ft.matmul %h, %dy transpose_a {layer = "h.0", phase = "backward"} : (tensor<3x8xf16>, tensor<3x4xf16>) -> tensor<8x4xf16>
  %dx = ft.call @gelu.grad(%x, %dh) {layer = "h.0", phase = "backward"} : (tensor<3x8xf16>, tensor<3x8xf16>) -> tensor<3x8xf16>
  return %dx, %dw : tensor<3x8xf16>, tensor<8x4xf16>
}
func.func private @gelu.grad(%x: tensor<3x8xf32>, %dy: tensor<3x8xf32>) -> tensor<3x8xf32> attributes {ft.composite, ft.origin = #ft.origin<derivative, "ft.gelu", {approximate = "tanh"}>} {
  %dx = ft.mul %dy, %x : tensor<3x8xf32>
  return %dx : tensor<3x8xf32>
}

// -----

// x is computed only after the product; others read the product; another form; a bias.
// CHECK-LABEL: @gradient_apart
// CHECK-NOT: ft.matmul_gelu_grad
func.func @gradient_apart(%dy: tensor<3x4xf32>, %w: tensor<4x8xf32>, %z: tensor<3x8xf32>, %b: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
  %0 = ft.matmul %dy, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %x = ft.scale %z, 2.0 : tensor<3x8xf32>
  %late = ft.call @gelu.grad(%x, %0) : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = ft.matmul %dy, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %shared = ft.call @gelu.grad(%x, %1) : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %2 = ft.matmul %dy, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %erf = ft.call @gelu_erf.grad(%x, %2) : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %3 = ft.matmul %dy, %w bias %b : (tensor<3x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %biased = ft.call @gelu.grad(%x, %3) : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  return %late, %shared, %1, %erf, %biased : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
}
func.func private @gelu.grad(%x: tensor<3x8xf32>, %dy: tensor<3x8xf32>) -> tensor<3x8xf32> attributes {ft.composite, ft.origin = #ft.origin<derivative, "ft.gelu", {approximate = "tanh"}>} {
  %dx = ft.mul %dy, %x : tensor<3x8xf32>
  return %dx : tensor<3x8xf32>
}
func.func private @gelu_erf.grad(%x: tensor<3x8xf32>, %dy: tensor<3x8xf32>) -> tensor<3x8xf32> attributes {ft.composite, ft.origin = #ft.origin<derivative, "ft.gelu", {approximate = "none"}>} {
  %dx = ft.mul %dy, %x : tensor<3x8xf32>
  return %dx : tensor<3x8xf32>
}
