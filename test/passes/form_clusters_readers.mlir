// RUN: ft-opt %s --ft-form-clusters=cluster-ops=3 | FileCheck %s
// Readers of one value are joined in the place of the later one: where the first had moved down to what it waits
// for, the second goes there, too, and not the first back before that.

// CHECK-LABEL: @train_step
func.func @train_step(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %a = ft.square %x {layer = "h.0", phase = "forward"} : tensor<4x16xf32>
  %b = ft.exp %x {layer = "h.0", phase = "forward"} : tensor<4x16xf32>
  // CHECK: %[[M:.*]] = ft.cluster @{{.*}}(%arg1)
  %m0 = ft.abs %y {layer = "h.0", phase = "forward"} : tensor<4x16xf32>
  %m1 = ft.exp %m0 {layer = "h.0", phase = "forward"} : tensor<4x16xf32>
  %m2 = ft.tanh %m1 {layer = "h.0", phase = "forward"} : tensor<4x16xf32>
  // CHECK-NEXT: %[[R:.*]]:2 = ft.cluster @{{.*}}(%arg0, %[[M]])
  %c = ft.add %a, %m2 {layer = "h.0", phase = "forward"} : tensor<4x16xf32>, tensor<4x16xf32>
  // CHECK-NEXT: return
  return %b, %c : tensor<4x16xf32>, tensor<4x16xf32>
}
