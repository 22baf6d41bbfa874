// RUN: ft-opt %s --ft-choose-remat="remat=full" --ft-apply-remat --ft-verify-remat | FileCheck %s
// RUN: ft-opt %s --ft-choose-remat="remat=full" --ft-apply-remat --cse --ft-verify-remat | FileCheck %s

// A random op draws the same numbers again: same input, same stream, no copy of the input itself.
// CHECK-LABEL: func.func @train_step
// CHECK: %[[RNG:.*]] = ft.input "rng"
// CHECK: %[[X:.*]] = ft.scale {{.*}}remat = "keep"
// CHECK: ft.silu %[[X]] {{.*}}remat = "recompute"
// CHECK: ft.random_bits %[[RNG]] stream 7 {{.*}}remat = "recompute"
// CHECK: ft.maximum
// CHECK-NOT: ft.input
// CHECK: %[[B:.*]] = ft.random_bits %[[RNG]] stream 7 {layer = "a", phase = "recompute"}
// CHECK-NEXT: %[[J:.*]] = ft.remainder %[[B]], 8.0 {layer = "a", phase = "recompute"}
// CHECK: ft.embedding_grad %[[J]]
// CHECK: ft.silu %[[X]] {{.*}}phase = "recompute"}

// The second run: eliminating common subexpressions does not undo it, because phases tell clones from originals.
ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "a"}
func.func @train_step(%in: tensor<4x4xf32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %w = ft.get @w {layer = "a", phase = "forward"} : tensor<8x4xf32>
  %rng = ft.input "rng" {layer = "a", phase = "forward"} : tensor<3xi64>
  %x = ft.scale %in, 2.0 {layer = "embed", phase = "forward"} : tensor<4x4xf32>
  %l = ft.silu %x {layer = "a", phase = "forward"} : tensor<4x4xf32>
  %b = ft.random_bits %rng stream 7 {layer = "a", phase = "forward"} : tensor<3xi64> -> tensor<4xi32>
  %i = ft.remainder %b, 8.0 {layer = "a", phase = "forward"} : tensor<4xi32>
  %e = ft.embedding %i, %w {layer = "a", phase = "forward"} : (tensor<4xi32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %h = ft.add %e, %l {layer = "a", phase = "forward"} : tensor<4x4xf32>, tensor<4x4xf32>
  %loss = ft.reduce "sum" %h over [0, 1] {layer = "head", phase = "forward"} : tensor<4x4xf32> -> tensor<f32>
  %one = ft.fill 1.0 {layer = "head", phase = "backward"} : tensor<f32>
  %d = ft.maximum %h, %one {layer = "head", phase = "backward"} : tensor<4x4xf32>, tensor<f32>
  %dw = ft.embedding_grad %i, %d {layer = "a", phase = "backward"} : (tensor<4xi32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dl = ft.scale %l, 2.0 {layer = "a", phase = "backward"} : tensor<4x4xf32>
  ft.gradient @w, %dw {layer = "a", phase = "backward"} : tensor<8x4xf32>
  return %loss : tensor<f32>
}
