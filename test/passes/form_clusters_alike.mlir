// RUN: ft-opt %s --ft-form-clusters | FileCheck %s
// Equal groups have one body; groups that differ in a number of an op, or in who reads what, have their own.

// CHECK-LABEL: @train_step
func.func @train_step(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: ft.cluster @[[HALF:.*]](%arg0, %arg1)
  %a = ft.shift %x, 0.5 {layer = "h.0", phase = "forward"} : tensor<4x8xf32>
  %b = ft.sub %a, %y {layer = "h.0", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %c = ft.reduce "sum" %b over [1] {layer = "h.0", phase = "forward"} : tensor<4x8xf32> -> tensor<4xf32>
  // CHECK: ft.cluster @[[ONE:.*]](%arg0, %arg1)
  %d = ft.shift %x, 1.0 {layer = "h.1", phase = "forward"} : tensor<4x8xf32>
  %e = ft.sub %d, %y {layer = "h.1", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %f = ft.reduce "sum" %e over [1] {layer = "h.1", phase = "forward"} : tensor<4x8xf32> -> tensor<4xf32>
  // CHECK: ft.cluster @[[SWAPPED:.*]](%{{.*}}, %{{.*}}) {{.*}}layer = "h.2"
  %g = ft.shift %x, 0.5 {layer = "h.2", phase = "forward"} : tensor<4x8xf32>
  %h = ft.sub %y, %g {layer = "h.2", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %i = ft.reduce "sum" %h over [1] {layer = "h.2", phase = "forward"} : tensor<4x8xf32> -> tensor<4xf32>
  // CHECK: ft.cluster @[[HALF]](%arg0, %arg1) {{.*}}layer = "h.3"
  %j = ft.shift %x, 0.5 {layer = "h.3", phase = "forward"} : tensor<4x8xf32>
  %k = ft.sub %j, %y {layer = "h.3", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %l = ft.reduce "sum" %k over [1] {layer = "h.3", phase = "forward"} : tensor<4x8xf32> -> tensor<4xf32>
  return %c, %f, %i, %l : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK-DAG: func.func private @[[HALF]](
// CHECK-DAG: shift %{{.*}}, 0.5
// CHECK-DAG: func.func private @[[ONE]](
// CHECK-DAG: shift %{{.*}}, 1.0
// CHECK: func.func private @[[SWAPPED]](
// CHECK: ft.sub %arg1
