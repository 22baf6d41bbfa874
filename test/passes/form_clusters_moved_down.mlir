// RUN: ft-opt %s --ft-form-clusters | FileCheck %s
// Ops that only move elements go where their group does, behind what a cluster makes that went down past the first of them.

// CHECK-LABEL: @train_step
// CHECK-NEXT: %[[SUMS:.*]]:2 = ft.cluster
// CHECK-NEXT: %[[WIDE:.*]] = ft.broadcast %[[SUMS]]#{{[01]}}
// CHECK-NEXT: ft.reshape %[[WIDE]]
func.func @train_step(%dx: tensor<3x8x16xf32>) -> (tensor<6x2x4x32xf32>, tensor<512x1x2xf32>) {
  %0 = ft.reduce "sum" %dx over [0, 1, 2] {phase = "backward"} : tensor<3x8x16xf32> -> tensor<f32>
  %1 = ft.scale %0, 0.5 {phase = "backward"} : tensor<f32>
  %2 = ft.reshape %1 {phase = "backward"} : tensor<f32> -> tensor<1xf32>
  %3 = ft.broadcast %2 {phase = "backward"} : tensor<1xf32> -> tensor<420xf32>
  %4 = ft.reshape %3 {phase = "backward"} : tensor<420xf32> -> tensor<1x30x2x7xf32>
  %5 = ft.reduce "sum" %dx over [0, 1, 2] {phase = "backward"} : tensor<3x8x16xf32> -> tensor<f32>
  %6 = ft.scale %5, 0.25 {phase = "backward"} : tensor<f32>
  %7 = ft.reshape %6 {phase = "backward"} : tensor<f32> -> tensor<1xf32>
  %8 = ft.broadcast %7 {phase = "backward"} : tensor<1xf32> -> tensor<1024xf32>
  %9 = ft.reshape %8 {phase = "backward"} : tensor<1024xf32> -> tensor<512x1x2xf32>
  %10 = ft.reshape %4 {phase = "backward"} : tensor<1x30x2x7xf32> -> tensor<5x2x2x21xf32>
  %11 = ft.pad %10 at [1, 0, 1, 10] {phase = "backward"} : tensor<5x2x2x21xf32> -> tensor<6x2x4x32xf32>
  %12 = ft.exp %9 {phase = "backward"} : tensor<512x1x2xf32>
  return %11, %12 : tensor<6x2x4x32xf32>, tensor<512x1x2xf32>
}
