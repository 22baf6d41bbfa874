// RUN: ft-opt %s --ft-autodiff --ft-verify-autodiff | FileCheck %s

// A parameter that forward reads in another shape and order: backward moves its elements again, right before it reads them,
// and nothing of them is kept.

ft.parameter @w : tensor<2x4x8xf32> = #ft.init<normal, 0.02>

// CHECK-LABEL: func.func @train_step
func.func @forward(%x: tensor<3x8xf32>) -> tensor<f32> {
  // CHECK: %[[W:.*]] = ft.get @w
  %w = ft.get @w : tensor<2x4x8xf32>
  // CHECK: %[[T:.*]] = ft.transpose %[[W]] [0, 2, 1] {layer = "h.0", phase = "forward"}
  // CHECK: %[[S:.*]] = ft.slice %[[T]] {{.*}}phase = "forward"
  // CHECK: %[[R:.*]] = ft.reshape %[[S]] {layer = "h.0", phase = "forward"}
  // CHECK: ft.matmul %{{.*}}, %[[R]] {{.*}}phase = "forward"
  %t = ft.transpose %w [0, 2, 1] {layer = "h.0"} : tensor<2x4x8xf32> -> tensor<2x8x4xf32>
  %s = ft.slice %t at [1, 0, 0] {layer = "h.0"} : tensor<2x8x4xf32> -> tensor<1x8x4xf32>
  %r = ft.reshape %s {layer = "h.0"} : tensor<1x8x4xf32> -> tensor<8x4xf32>
  %z = ft.exp %x {layer = "h.0"} : tensor<3x8xf32>
  %y = ft.matmul %z, %r {layer = "h.0"} : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  %u = ft.exp %y {layer = "h.0"} : tensor<3x4xf32>
  %v = ft.matmul %u, %r transpose_b {layer = "h.1"} : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  %loss = ft.reduce "sum" %v over [0, 1] {layer = "h.1"} : tensor<3x8xf32> -> tensor<f32>
  // CHECK: %[[T2:.*]] = ft.transpose %[[W]] [0, 2, 1] {layer = "h.1", phase = "backward"}
  // CHECK-NEXT: %[[S2:.*]] = ft.slice %[[T2]] {{.*}}phase = "backward"
  // CHECK-NEXT: %[[R2:.*]] = ft.reshape %[[S2]] {layer = "h.1", phase = "backward"}
  // CHECK-NEXT: ft.matmul %{{.*}}, %[[R2]] {{.*}}phase = "backward"
  // CHECK-NOT: %[[R]]{{[^0-9]}}
  // CHECK: return
  return %loss : tensor<f32>
}
