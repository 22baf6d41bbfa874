// RUN: ft-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @add_of_zero
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[V:.*]]: tensor<4xf32>)
func.func @add_of_zero(%x: tensor<2x4xf32>, %v: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %zero = ft.fill 0.0 : tensor<2x4xf32>
  %left = ft.add %zero, %x : tensor<2x4xf32>, tensor<2x4xf32>
  %right = ft.add %x, %zero : tensor<2x4xf32>, tensor<2x4xf32>
  // The zero is repeated here: the sum is no copy of the smaller tensor.
  // CHECK: %[[ZERO:.*]] = ft.fill 0.0
  // CHECK-NEXT: %[[SUM:.*]] = ft.add %[[ZERO]], %[[V]]
  %wide = ft.add %zero, %v : tensor<2x4xf32>, tensor<4xf32>
  // CHECK-NEXT: return %[[X]], %[[X]], %[[SUM]]
  return %left, %right, %wide : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @scale
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @scale(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %same = ft.scale %x, 1.0 : tensor<4xf32>
  // CHECK: %[[TWICE:.*]] = ft.scale %[[X]], 2.0
  %twice = ft.scale %x, 2.0 : tensor<4xf32>
  // CHECK-NEXT: return %[[X]], %[[TWICE]]
  return %same, %twice : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @same_shape
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @same_shape(%x: tensor<4xf32>) -> tensor<4xf32> {
  %wide = ft.broadcast %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK-NEXT: return %[[X]]
  return %wide : tensor<4xf32>
}

// CHECK-LABEL: func.func @dead
func.func @dead(%x: tensor<4xf32>) {
  %unused = ft.scale %x, 2.0 : tensor<4xf32>
  // CHECK-NEXT: return
  return
}
