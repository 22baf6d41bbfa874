// RUN: ft-opt %s --split-input-file --ft-fuse-bias-grad | FileCheck %s

// The sum of what a weight's gradient reads joins it, of the right operand and of the left one; layer and phase are the product's.
// CHECK-LABEL: @joined
// CHECK-SAME:    %[[X:[^:]+]]: tensor<2x3x4xbf16>, %[[DY:[^:]+]]: tensor<2x3x8xbf16>
func.func @joined(%x: tensor<2x3x4xbf16>, %dy: tensor<2x3x8xbf16>) -> (tensor<8xbf16>, tensor<4x8xbf16>, tensor<8xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: %[[W:.*]], %[[B:.*]] = ft.matmul_bias_grad %[[X]], %[[DY]] transpose_a beside @sum_rows partial_bytes [64, 96] {layer = "h.0", phase = "backward"} : (tensor<2x3x4xbf16>, tensor<2x3x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xbf16>)
  // CHECK-NEXT: %[[V:.*]], %[[C:.*]] = ft.matmul_bias_grad %[[DY]], %[[X]] transpose_a beside @sum_rows_wide of_a partial_bytes [64, 96] : (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>) -> (tensor<8x4xf32>, tensor<8xf32>)
  // CHECK-NEXT: return %[[B]], %[[W]], %[[C]], %[[V]]
  %b = ft.cluster @sum_rows(%dy) partial_bytes [64, 96] in_place [-1] {layer = "h.0", phase = "backward"} : (tensor<2x3x8xbf16>) -> tensor<8xbf16>
  %w = ft.matmul %x, %dy transpose_a {layer = "h.0", phase = "backward"} : (tensor<2x3x4xbf16>, tensor<2x3x8xbf16>) -> tensor<4x8xbf16>
  %v = ft.matmul %dy, %x transpose_a : (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>) -> tensor<8x4xf32>
  %c = ft.cluster @sum_rows_wide(%dy) partial_bytes [64, 96] in_place [-1] : (tensor<2x3x8xbf16>) -> tensor<8xf32>
  return %b, %w, %c, %v : tensor<8xbf16>, tensor<4x8xbf16>, tensor<8xf32>, tensor<8x4xf32>
}
func.func private @sum_rows(%x: tensor<2x3x8xbf16>) -> tensor<8xbf16> attributes {ft.cluster} {
  %sum = ft.reduce "sum" %x over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xbf16>
  return %sum : tensor<8xbf16>
}
func.func private @sum_rows_wide(%x: tensor<2x3x8xbf16>) -> tensor<8xf32> attributes {ft.cluster} {
  %sum = ft.reduce "sum" %x over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// -----

// Other sums and products: more than a sum, another reduction, over one dimension, of another type than the product, a product that goes on from
// another, one of another phase, one behind who reads the sum, and operands of f32.
// CHECK-LABEL: @apart
// CHECK-NOT: ft.matmul_bias_grad
func.func @apart(%x: tensor<2x3x4xbf16>, %dy: tensor<2x3x8xbf16>, %acc: tensor<4x8xbf16>, %x32: tensor<3x4xf32>, %dy32: tensor<3x8xf32>) -> (tensor<8xbf16>, tensor<8xbf16>, tensor<2x8xbf16>, tensor<8xf32>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xbf16>, tensor<4x8xbf16>, tensor<8xf32>, tensor<4x8xf32>) {
  %0 = ft.cluster @scaled(%dy) partial_bytes [64, 64] in_place [-1] : (tensor<2x3x8xbf16>) -> tensor<8xbf16>
  %1 = ft.cluster @largest(%dy) partial_bytes [64, 64] in_place [-1] : (tensor<2x3x8xbf16>) -> tensor<8xbf16>
  %2 = ft.cluster @one(%dy) partial_bytes [64, 64] in_place [-1] : (tensor<2x3x8xbf16>) -> tensor<2x8xbf16>
  %3 = ft.cluster @wide(%dy) partial_bytes [64, 64] in_place [-1] : (tensor<2x3x8xbf16>) -> tensor<8xf32>
  %4 = ft.matmul %x, %dy transpose_a : (tensor<2x3x4xbf16>, tensor<2x3x8xbf16>) -> tensor<4x8xbf16>
  %5 = ft.matmul %x, %dy into %acc transpose_a {phase = "backward"} : (tensor<2x3x4xbf16>, tensor<2x3x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %6 = ft.cluster @sum(%dy) partial_bytes [64, 64] in_place [-1] {phase = "backward"} : (tensor<2x3x8xbf16>) -> tensor<8xbf16>
  %7 = ft.scale %6, 2.0 {phase = "backward"} : tensor<8xbf16>
  %8 = ft.matmul %x, %dy transpose_a {phase = "backward"} : (tensor<2x3x4xbf16>, tensor<2x3x8xbf16>) -> tensor<4x8xbf16>
  %9 = ft.cluster @sum32(%dy32) partial_bytes [64, 64] in_place [-1] : (tensor<3x8xf32>) -> tensor<8xf32>
  %10 = ft.matmul %x32, %dy32 transpose_a : (tensor<3x4xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return %0, %1, %2, %3, %4, %5, %7, %8, %9, %10 : tensor<8xbf16>, tensor<8xbf16>, tensor<2x8xbf16>, tensor<8xf32>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xbf16>, tensor<4x8xbf16>, tensor<8xf32>, tensor<4x8xf32>
}
func.func private @scaled(%x: tensor<2x3x8xbf16>) -> tensor<8xbf16> attributes {ft.cluster} {
  %y = ft.scale %x, 2.0 : tensor<2x3x8xbf16>
  %sum = ft.reduce "sum" %y over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xbf16>
  return %sum : tensor<8xbf16>
}
func.func private @largest(%x: tensor<2x3x8xbf16>) -> tensor<8xbf16> attributes {ft.cluster} {
  %most = ft.reduce "max" %x over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xbf16>
  return %most : tensor<8xbf16>
}
func.func private @one(%x: tensor<2x3x8xbf16>) -> tensor<2x8xbf16> attributes {ft.cluster} {
  %sum = ft.reduce "sum" %x over [1] : tensor<2x3x8xbf16> -> tensor<2x8xbf16>
  return %sum : tensor<2x8xbf16>
}
func.func private @wide(%x: tensor<2x3x8xbf16>) -> tensor<8xf32> attributes {ft.cluster} {
  %sum = ft.reduce "sum" %x over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xf32>
  return %sum : tensor<8xf32>
}
func.func private @sum(%x: tensor<2x3x8xbf16>) -> tensor<8xbf16> attributes {ft.cluster} {
  %sum = ft.reduce "sum" %x over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xbf16>
  return %sum : tensor<8xbf16>
}
func.func private @sum32(%x: tensor<3x8xf32>) -> tensor<8xf32> attributes {ft.cluster} {
  %sum = ft.reduce "sum" %x over [0] : tensor<3x8xf32> -> tensor<8xf32>
  return %sum : tensor<8xf32>
}
