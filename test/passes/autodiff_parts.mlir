// RUN: ft-opt %s --ft-outline-composites --ft-autodiff --ft-verify-autodiff | FileCheck %s
// Gradients of slices: side by side they are joined, with zeros around what is left; others are sums.

ft.parameter @w : tensor<8x6xf32> = #ft.init<normal, 1.0>
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<1x4xi32>, %targets: tensor<1x4xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<8x6xf32>
  %x = ft.embedding %tokens, %w : (tensor<1x4xi32>, tensor<8x6xf32>) -> tensor<1x4x6xf32>
  %a = ft.slice %x at [0, 0, 0] : tensor<1x4x6xf32> -> tensor<1x4x2xf32>
  %b = ft.slice %x at [0, 0, 2] : tensor<1x4x6xf32> -> tensor<1x4x2xf32>
  %c = ft.slice %x at [0, 0, 4] : tensor<1x4x6xf32> -> tensor<1x4x2xf32>
  %y = ft.mul %a, %b : tensor<1x4x2xf32>
  %z = ft.mul %y, %c : tensor<1x4x2xf32>
  // CHECK: %[[DC:.*]] = ft.mul %{{.*}}, %{{.*}} {phase = "backward"} : tensor<1x4x2xf32>
  // CHECK-NOT: ft.pad
  // CHECK: %[[BC:.*]] = ft.concat %[[DB:.*]], %[[DC]] axis 2 {phase = "backward"} : tensor<1x4x2xf32>, tensor<1x4x2xf32> -> tensor<1x4x4xf32>
  // CHECK-NOT: ft.pad
  // CHECK: %[[ALL:.*]] = ft.concat %[[DA:.*]], %[[BC]] axis 2 {phase = "backward"} : tensor<1x4x2xf32>, tensor<1x4x4xf32> -> tensor<1x4x6xf32>
  // CHECK: ft.embedding_grad %{{.*}}, %[[ALL]]
  %loss = ft.cross_entropy %z, %targets : (tensor<1x4x2xf32>, tensor<1x4xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
