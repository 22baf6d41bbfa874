// RUN: ft-opt %s --ft-choose-remat="offload-activations=true" --ft-apply-remat --ft-insert-offload --ft-verify-remat | FileCheck %s --check-prefix=ALL
// RUN: ft-opt %s --ft-choose-remat="remat=full offload-activations=true" --ft-apply-remat --ft-insert-offload --ft-verify-remat | FileCheck %s --check-prefix=FULL

// All that waits for backward goes to the host once forward has read it, but what the last layer's gradient reads.
// ALL-LABEL: func.func @train_step
// ALL: %[[X:.*]] = ft.scale {{.*}}remat = "offload"
// ALL-NEXT: %[[A:.*]] = ft.silu %[[X]] {{.*}}remat = "offload"
// ALL-NEXT: %[[B:.*]] = ft.mul %[[A]], %[[X]] {{.*}}remat = "keep"
// ALL-NEXT: %[[AH:.*]] = ft.offload %[[A]] {layer = "a", phase = "forward"}
// ALL-NEXT: %[[XH:.*]] = ft.offload %[[X]] {layer = "embed", phase = "forward"} : tensor<4x8xf32> -> !ft.host<tensor<4x8xf32>>
// ALL: ft.maximum
// ALL-NEXT: %[[XB:.*]] = ft.reload %[[XH]] {layer = "embed", phase = "backward"}
// ALL-NEXT: %[[D1:.*]] = ft.mul %{{.*}}, %[[XB]]
// ALL-NEXT: %[[AB:.*]] = ft.reload %[[AH]] {layer = "a", phase = "backward"}
// ALL-NEXT: ft.mul %[[D1]], %[[AB]]
// ALL-NEXT: ft.mul %{{.*}}, %[[XB]]

// With recomputation the checkpoints go.
// FULL-LABEL: func.func @train_step
// FULL: %[[X:.*]] = ft.scale {{.*}}remat = "offload"
// FULL-NEXT: ft.silu %[[X]] {{.*}}remat = "recompute"
// FULL-NEXT: ft.mul
// FULL-NEXT: %[[XH:.*]] = ft.offload %[[X]]
// FULL-NOT: ft.offload
// FULL: ft.maximum
// FULL-NEXT: %[[XB:.*]] = ft.reload %[[XH]] {layer = "embed", phase = "backward"}
// FULL-NEXT: ft.mul %{{.*}}, %[[XB]]
// FULL-NEXT: ft.silu %[[XB]] {layer = "a", phase = "recompute"}
func.func @train_step(%in: tensor<4x8xf32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %x = ft.scale %in, 2.0 {layer = "embed", phase = "forward"} : tensor<4x8xf32>
  %a = ft.silu %x {layer = "a", phase = "forward"} : tensor<4x8xf32>
  %b = ft.mul %a, %x {layer = "a", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %loss = ft.reduce "sum" %b over [0, 1] {layer = "head", phase = "forward"} : tensor<4x8xf32> -> tensor<f32>
  %one = ft.fill 1.0 {layer = "head", phase = "backward"} : tensor<f32>
  %d = ft.maximum %b, %one {layer = "head", phase = "backward"} : tensor<4x8xf32>, tensor<f32>
  %d1 = ft.mul %d, %x {layer = "a", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %d2 = ft.mul %d1, %a {layer = "a", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %dx = ft.mul %d2, %x {layer = "a", phase = "backward"} : tensor<4x8xf32>
  ft.gradient @w, %dx {layer = "embed", phase = "backward"} : tensor<4x8xf32>
  return %loss : tensor<f32>
}
ft.parameter @w : tensor<4x8xf32> = #ft.init<normal, 0.02> {layer = "embed"}
