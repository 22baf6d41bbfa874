// RUN: ft-opt %s --split-input-file --ft-outline-composites --ft-autodiff --ft-verify-autodiff | FileCheck %s

// Three products of one activation: one chain of accumulations, from the last use to the first.
ft.parameter @x : tensor<4x8xf32> = #ft.init<normal, 1.0>
ft.parameter @q : tensor<8x8xf32> = #ft.init<normal, 1.0> {frozen}
ft.parameter @k : tensor<8x8xf32> = #ft.init<normal, 1.0> {frozen}
ft.parameter @v : tensor<8x8xf32> = #ft.init<normal, 1.0> {frozen}
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %x = ft.get @x : tensor<4x8xf32>
  // CHECK: %[[QW:.*]] = ft.get @q
  // CHECK: %[[KW:.*]] = ft.get @k
  // CHECK: %[[VW:.*]] = ft.get @v
  %qw = ft.get @q : tensor<8x8xf32>
  %kw = ft.get @k : tensor<8x8xf32>
  %vw = ft.get @v : tensor<8x8xf32>
  %q = ft.matmul %x, %qw transpose_b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %k = ft.matmul %x, %kw transpose_b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %v = ft.matmul %x, %vw transpose_b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %all = ft.concat %q, %k, %v : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x24xf32>
  %loss = ft.cross_entropy %all, %targets : (tensor<4x24xf32>, tensor<4xi32>) -> tensor<f32>
  // CHECK: %[[D:.*]]:3 = ft.split
  // CHECK: %[[D1:.*]] = ft.matmul %[[D]]#2, %[[VW]] {phase
  // CHECK: %[[D2:.*]] = ft.matmul %[[D]]#1, %[[KW]] into %[[D1]] {phase
  // CHECK: %[[D3:.*]] = ft.matmul %[[D]]#0, %[[QW]] into %[[D2]] {phase
  // CHECK-NEXT: ft.gradient @x, %[[D3]]
  // CHECK-NEXT: return
  return %loss : tensor<f32>
}

// -----

// One value as both operands: its sum is offered to one of them only.
ft.parameter @x : tensor<4x4xf32> = #ft.init<normal, 1.0>
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  // CHECK: %[[X:.*]] = ft.get @x
  %x = ft.get @x : tensor<4x4xf32>
  %again = ft.get @x : tensor<4x4xf32>
  %square = ft.matmul %x, %again : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %sum = ft.mul %square, %x : tensor<4x4xf32>, tensor<4x4xf32>
  %loss = ft.cross_entropy %sum, %targets : (tensor<4x4xf32>, tensor<4xi32>) -> tensor<f32>
  // CHECK: %[[D:.*]] = ft.call @cross_entropy.grad
  // CHECK: %[[S1:.*]] = ft.mul %[[D]], %{{.*}} {phase
  // CHECK: %[[DS:.*]] = ft.mul %[[D]], %[[X]] {phase
  // CHECK: %[[DB:.*]] = ft.matmul %[[X]], %[[DS]] transpose_a
  // CHECK: %[[S2:.*]] = ft.matmul %[[DS]], %{{.*}} into %[[S1]] transpose_b
  // CHECK: %[[S3:.*]] = ft.add %[[S2]], %[[DB]]
  // CHECK-NEXT: ft.gradient @x, %[[S3]]
  return %loss : tensor<f32>
}

// -----

// A part of a split that nobody uses has gradient zero; the gradient is declared as soon as it is final.
ft.parameter @first : tensor<4x8xf32> = #ft.init<normal, 1.0>
ft.parameter @second : tensor<4x3xf32> = #ft.init<normal, 1.0>
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %first = ft.get @first : tensor<4x8xf32>
  %second = ft.get @second : tensor<4x3xf32>
  %a, %b = ft.split %first : tensor<4x8xf32> -> tensor<4x5xf32>, tensor<4x3xf32>
  %sum = ft.add %b, %second : tensor<4x3xf32>, tensor<4x3xf32>
  %loss = ft.cross_entropy %sum, %targets : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<f32>
  // CHECK: %[[D:.*]] = ft.call @cross_entropy.grad
  // CHECK-NEXT: ft.gradient @second, %[[D]]
  // CHECK-NEXT: %[[ZERO:.*]] = ft.fill 0.0 {{.*}} : tensor<4x5xf32>
  // CHECK-NEXT: %[[DFIRST:.*]] = ft.concat %[[ZERO]], %[[D]]
  // CHECK-NEXT: ft.gradient @first, %[[DFIRST]]
  return %loss : tensor<f32>
}

// -----

// A loss that no trained parameter reaches: no backward graph but zeros.
ft.parameter @frozen : tensor<4x3xf32> = #ft.init<normal, 1.0> {frozen}
ft.parameter @trained : tensor<3xf32> = #ft.init<normal, 1.0>
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %frozen = ft.get @frozen : tensor<4x3xf32>
  // CHECK: %[[LOSS:.*]] = ft.call @cross_entropy(
  %loss = ft.cross_entropy %frozen, %targets : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<f32>
  // CHECK-NEXT: %[[ZERO:.*]] = ft.fill 0.0
  // CHECK-NEXT: ft.gradient @trained, %[[ZERO]]
  // CHECK-NEXT: return %[[LOSS]]
  return %loss : tensor<f32>
}
