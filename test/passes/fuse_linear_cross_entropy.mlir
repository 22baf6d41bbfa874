// RUN: ft-opt %s --split-input-file --ft-fuse-linear-cross-entropy | FileCheck %s

// CHECK-LABEL: @forward
// CHECK-SAME:    %[[X:[^:]+]]: tensor<2x3x8xf32>, %[[W:[^:]+]]: tensor<16x8xf32>, %[[T:[^:]+]]: tensor<2x3xi32>
func.func @forward(%x: tensor<2x3x8xf32>, %w: tensor<16x8xf32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  // CHECK-NEXT: %[[LOSS:.*]] = ft.linear_cross_entropy %[[X]], %[[W]], %[[T]] {layer = "head"}
  // CHECK-NEXT: return %[[LOSS]]
  %logits = ft.matmul %x, %w transpose_b {layer = "head"} : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %loss = ft.cross_entropy %logits, %targets : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A weight stored [D, V].
// CHECK-LABEL: @conv1d
func.func @conv1d(%x: tensor<3x8xf32>, %w: tensor<8x16xf32>, %targets: tensor<3xi32>) -> tensor<f32> {
  // CHECK: ft.cross_entropy
  %logits = ft.matmul %x, %w : (tensor<3x8xf32>, tensor<8x16xf32>) -> tensor<3x16xf32>
  %loss = ft.cross_entropy %logits, %targets : (tensor<3x16xf32>, tensor<3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: @bias
func.func @bias(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>, %targets: tensor<3xi32>) -> tensor<f32> {
  // CHECK: ft.cross_entropy
  %logits = ft.matmul %x, %w bias %b transpose_b : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<3x16xf32>
  %loss = ft.cross_entropy %logits, %targets : (tensor<3x16xf32>, tensor<3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Somebody else needs the logits.
// CHECK-LABEL: @shared
func.func @shared(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %targets: tensor<3xi32>) -> (tensor<f32>, tensor<3x16xf32>) {
  // CHECK: ft.cross_entropy
  %logits = ft.matmul %x, %w transpose_b : (tensor<3x8xf32>, tensor<16x8xf32>) -> tensor<3x16xf32>
  %loss = ft.cross_entropy %logits, %targets : (tensor<3x16xf32>, tensor<3xi32>) -> tensor<f32>
  return %loss, %logits : tensor<f32>, tensor<3x16xf32>
}
