// RUN: ft-opt %s --ft-outline-composites --ft-autodiff --ft-choose-remat="remat=ops:mlp" --ft-apply-remat --ft-verify-remat | FileCheck %s

// Gate and up of one product: it is kept whole, and cut again by what is computed again, as by derivatives.

// CHECK-LABEL: func.func @train_step
// CHECK: %[[BOTH:.*]] = ft.matmul {{.*}}phase = "forward", remat = "keep"
// CHECK: ft.split %[[BOTH]] {{.*}}phase = "forward", remat = "recompute"
// CHECK: ft.call @swiglu({{.*}}phase = "forward", remat = "recompute"
// CHECK: %[[AGAIN:.*]]:2 = ft.split %[[BOTH]] {{.*}}phase = "recompute"
// CHECK: ft.call @swiglu(%[[AGAIN]]#0, %[[AGAIN]]#1) {{.*}}phase = "recompute"
// CHECK-DAG: ft.slice %[[BOTH]] at [0, 0] {{.*}}phase = "backward"
// CHECK-DAG: ft.slice %[[BOTH]] at [0, 4] {{.*}}phase = "backward"
// CHECK: ft.gradient
ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "a"}
ft.parameter @d : tensor<4x8xf32> = #ft.init<normal, 0.02> {layer = "a"}
func.func @forward(%x: tensor<2x8xf32>) -> tensor<f32> {
  %w = ft.get @w {layer = "a"} : tensor<8x8xf32>
  %both = ft.matmul %x, %w {layer = "a"} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %gate, %up = ft.split %both {layer = "a"} : tensor<2x8xf32> -> tensor<2x4xf32>, tensor<2x4xf32>
  %h = ft.swiglu %gate, %up {layer = "a"} : tensor<2x4xf32>
  %d = ft.get @d {layer = "a"} : tensor<4x8xf32>
  %y = ft.matmul %h, %d {layer = "a"} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %loss = ft.reduce "sum" %y over [0, 1] {layer = "head"} : tensor<2x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
