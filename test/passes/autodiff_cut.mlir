// RUN: ft-opt %s --ft-autodiff --ft-verify-autodiff | FileCheck %s

// What forward cuts, and backward computes on whole, is cut again; a part alone is kept, and so is what a
// product reads.

ft.parameter @w : tensor<4x4xf32> = #ft.init<normal, 0.02>

// CHECK-LABEL: func.func @train_step
func.func @forward(%x: tensor<3x4xf32>) -> tensor<f32> {
  %w = ft.get @w : tensor<4x4xf32>
  // CHECK: %[[H:.*]] = ft.matmul %{{.*}} {phase = "forward"}
  // CHECK: %[[GATE:.*]] = ft.slice %[[H]] at [0, 0] {phase = "forward"}
  // CHECK: %[[UP:.*]] = ft.slice %[[H]] at [0, 2] {phase = "forward"}
  %h = ft.matmul %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %gate = ft.slice %h at [0, 0] : tensor<3x4xf32> -> tensor<3x2xf32>
  %up = ft.slice %h at [0, 2] : tensor<3x4xf32> -> tensor<3x2xf32>
  %p = ft.mul %gate, %up : tensor<3x2xf32>, tensor<3x2xf32>
  // CHECK: %[[Q:.*]] = ft.matmul %{{.*}} {phase = "forward"}
  // CHECK: %[[AB:.*]]:2 = ft.split %[[Q]] {phase = "forward"}
  %q = ft.matmul %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %a, %b = ft.split %q : tensor<3x4xf32> -> tensor<3x2xf32>, tensor<3x2xf32>
  %e = ft.square %a : tensor<3x2xf32>
  // CHECK: %[[K:.*]] = ft.matmul %{{.*}} {phase = "forward"}
  // CHECK: %[[CD:.*]]:2 = ft.split %[[K]] {phase = "forward"}
  %k = ft.matmul %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %c, %d = ft.split %k : tensor<3x4xf32> -> tensor<3x2xf32>, tensor<3x2xf32>
  %m = ft.dot %c, %d transpose_b : tensor<3x2xf32>, tensor<3x2xf32> -> tensor<3x3xf32>
  %s0 = ft.reduce "sum" %p over [0, 1] : tensor<3x2xf32> -> tensor<f32>
  %s1 = ft.reduce "sum" %e over [0, 1] : tensor<3x2xf32> -> tensor<f32>
  %s2 = ft.reduce "sum" %b over [0, 1] : tensor<3x2xf32> -> tensor<f32>
  %s3 = ft.reduce "sum" %m over [0, 1] : tensor<3x3xf32> -> tensor<f32>
  %l0 = ft.add %s0, %s1 : tensor<f32>, tensor<f32>
  %l1 = ft.add %s2, %s3 : tensor<f32>, tensor<f32>
  %loss = ft.add %l0, %l1 : tensor<f32>, tensor<f32>
  // CHECK-DAG: ft.dot %{{.*}}, %[[CD]]#1 {{.*}}phase = "backward"
  // CHECK-DAG: ft.dot %{{.*}}, %[[CD]]#0 {{.*}}phase = "backward"
  // CHECK-DAG: ft.scale %[[AB]]#0, 2.0 {phase = "backward"}
  // CHECK-DAG: %[[UP2:.*]] = ft.slice %[[H]] at [0, 2] {phase = "backward"}
  // CHECK-DAG: ft.mul %{{.*}}, %[[UP2]] {phase = "backward"}
  // CHECK-DAG: %[[GATE2:.*]] = ft.slice %[[H]] at [0, 0] {phase = "backward"}
  // CHECK-DAG: ft.mul %{{.*}}, %[[GATE2]] {phase = "backward"}
  // CHECK: return
  return %loss : tensor<f32>
}
