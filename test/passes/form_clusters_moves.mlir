// RUN: ft-opt %s --ft-form-clusters | FileCheck %s
// Ops that only move elements, and go together in the place of the first of them, are no cluster: they have to stand there all the
// same, since a cluster that reads the last of them may stand before it was.

// CHECK-LABEL: @train_step
func.func @train_step(%x: tensor<2x8xf32>, %z: tensor<8xf32>, %w: tensor<16x16xf32>, %v: tensor<8x8xf32>) -> (tensor<1x16xf32>, tensor<1x8xf32>, tensor<8xf32>) {
  // CHECK: %[[ROW:.*]] = ft.reshape
  // CHECK-NEXT: ft.dot %[[ROW]]
  // CHECK-NEXT: %[[PART:.*]] = ft.slice %[[ROW]]
  // CHECK-NEXT: %[[FLAT:.*]] = ft.reshape %[[PART]]
  // CHECK-NEXT: %[[E:.*]]:2 = ft.cluster @{{.*}}(%{{.*}}, %[[FLAT]])
  // CHECK-NEXT: ft.dot
  %row = ft.reshape %x {phase = "forward"} : tensor<2x8xf32> -> tensor<1x16xf32>
  %a = ft.dot %row, %w {phase = "forward"} : tensor<1x16xf32>, tensor<16x16xf32> -> tensor<1x16xf32>
  %e = ft.exp %z {phase = "backward"} : tensor<8xf32>
  %part = ft.slice %row at [0, 4] {phase = "forward"} : tensor<1x16xf32> -> tensor<1x8xf32>
  %flat = ft.reshape %part {phase = "forward"} : tensor<1x8xf32> -> tensor<8xf32>
  %er = ft.reshape %e {phase = "backward"} : tensor<8xf32> -> tensor<1x8xf32>
  %b = ft.dot %er, %v {phase = "backward"} : tensor<1x8xf32>, tensor<8x8xf32> -> tensor<1x8xf32>
  %s = ft.add %e, %flat {phase = "backward"} : tensor<8xf32>, tensor<8xf32>
  return %a, %b, %s : tensor<1x16xf32>, tensor<1x8xf32>, tensor<8xf32>
}
