// RUN: ft-opt %s --ft-outline-composites --ft-choose-remat="remat=ops:mlp" --ft-apply-remat --ft-verify-remat | FileCheck %s
// RUN: ft-opt %s --ft-outline-composites --ft-choose-remat="remat=ops:norms" --ft-apply-remat --ft-verify-remat | FileCheck %s --check-prefix=NORMS

// A call is of the class of the op that its callee was outlined from.
// CHECK-LABEL: func.func @train_step
// CHECK: ft.call @rms_norm({{.*}}remat = "keep"
// CHECK: ft.matmul {{.*}}remat = "keep"
// CHECK: ft.call @gelu({{.*}}remat = "recompute"
// CHECK: ft.scale {{.*}}backward
// CHECK-NEXT: ft.call @gelu({{.*}}phase = "recompute"
// CHECK-NOT: phase = "recompute"
// NORMS-LABEL: func.func @train_step
// NORMS: ft.call @rms_norm({{.*}}remat = "recompute"
// NORMS: ft.call @gelu({{.*}}remat = "keep"
// NORMS: ft.call @rms_norm({{.*}}phase = "recompute"
func.func @train_step(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %n: tensor<8xf32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %h = ft.rms_norm %x, %n eps 1.0e-5 {layer = "a", phase = "forward"} : tensor<4x8xf32>, tensor<8xf32>
  %a = ft.matmul %h, %w {layer = "a", phase = "forward"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b = ft.gelu %a approximate "tanh" {layer = "a", phase = "forward"} : tensor<4x8xf32>
  %c = ft.mul %b, %h {layer = "a", phase = "forward"} : tensor<4x8xf32>
  %loss = ft.reduce "sum" %c over [0, 1] {layer = "head", phase = "forward"} : tensor<4x8xf32> -> tensor<f32>
  %one = ft.fill 1.0 {layer = "head", phase = "backward"} : tensor<f32>
  %d = ft.maximum %c, %one {layer = "head", phase = "backward"} : tensor<4x8xf32>, tensor<f32>
  %ds = ft.scale %d, 3.0 {layer = "a", phase = "backward"} : tensor<4x8xf32>
  %dh = ft.mul %ds, %b {layer = "a", phase = "backward"} : tensor<4x8xf32>
  %db = ft.mul %d, %h {layer = "a", phase = "backward"} : tensor<4x8xf32>
  %dw = ft.matmul %db, %dh transpose_a {layer = "a", phase = "backward"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  ft.gradient @w, %dw {layer = "a", phase = "backward"} : tensor<8x8xf32>
  return %loss : tensor<f32>
}
ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "a"}
