// RUN: ft-opt %s --ft-choose-remat="remat=every_n:1" --ft-apply-remat --ft-verify-remat | FileCheck %s --check-prefix=EACH
// RUN: ft-opt %s --ft-choose-remat="remat=full" --ft-apply-remat --ft-verify-remat | FileCheck %s --check-prefix=EACH
// RUN: ft-opt %s --ft-choose-remat="remat=segments:2" --ft-apply-remat --ft-verify-remat | FileCheck %s --check-prefix=EACH
// RUN: ft-opt %s --ft-choose-remat="remat=every_n:2" --ft-apply-remat --ft-verify-remat | FileCheck %s --check-prefix=PAIR
// RUN: ft-opt %s --ft-choose-remat="remat=none" --ft-apply-remat --ft-verify-remat | FileCheck %s --check-prefix=NONE

// Two layers, each a product and an activation, then the loss. Backward reads the inputs of both.
ft.parameter @wa : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "a"}
ft.parameter @wb : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "b"}

// What a layer hands on is kept; the rest of it is computed again in front of its first reader.
// EACH-LABEL: func.func @train_step
// EACH: %[[X:.*]] = ft.scale %{{.*}}, 2.0 {layer = "embed", phase = "forward", remat = "keep"}
// EACH: %[[A1:.*]] = ft.matmul %[[X]], %[[WA:wa]] {{.*}}remat = "recompute"
// Backward does not need this one.
// EACH-NEXT: %[[A2:.*]] = ft.silu %[[A1]] {layer = "a", phase = "forward"}
// EACH: %[[A3:.*]] = ft.mul %[[A2]], %[[X]] {{.*}}remat = "keep"
// EACH: %[[B1:.*]] = ft.matmul %[[A3]], %[[WB:wb]] {{.*}}remat = "recompute"
// EACH: ft.silu %[[B1]] {{.*}}remat = "recompute"
// EACH: ft.maximum
// EACH-NEXT: ft.scale
// EACH-NEXT: %[[B1C:.*]] = ft.matmul %[[A3]], %[[WB]] {layer = "b", phase = "recompute"}
// EACH-NEXT: %[[B2C:.*]] = ft.silu %[[B1C]] {layer = "b", phase = "recompute"}
// EACH-NEXT: ft.mul %{{.*}}, %[[B2C]] {layer = "b", phase = "backward"}
// EACH-NEXT: ft.mul %{{.*}}, %[[A3]] {layer = "b", phase = "backward"}
// EACH-NEXT: ft.mul %{{.*}}, %[[B1C]]
// EACH: %[[DA:.*]] = ft.matmul {{.*}}transpose_b {layer = "b", phase = "backward"}
// EACH-NEXT: ft.matmul %[[A3]], %{{.*}} transpose_a
// EACH-NEXT: ft.mul %[[DA]], %[[X]]
// EACH-NEXT: %[[A1C:.*]] = ft.matmul %[[X]], %[[WA]] {layer = "a", phase = "recompute"}
// EACH-NEXT: ft.mul %{{.*}}, %[[A1C]]

// Both layers are one group: the clones of layer a stand in front of all that runs of layer b, those of b right before their
// first reader. So b's parameters are gathered once.
// PAIR-LABEL: func.func @train_step
// PAIR: ft.mul {{.*}}layer = "a", phase = "forward", remat = "recompute"
// PAIR: ft.maximum
// PAIR-NEXT: ft.matmul {{.*}}layer = "a", phase = "recompute"
// PAIR-NEXT: ft.silu {{.*}}layer = "a", phase = "recompute"
// PAIR-NEXT: ft.mul {{.*}}layer = "a", phase = "recompute"
// PAIR-NEXT: ft.scale {{.*}}layer = "b", phase = "backward"
// PAIR-NEXT: ft.matmul {{.*}}layer = "b", phase = "recompute"
// PAIR-NEXT: ft.silu {{.*}}layer = "b", phase = "recompute"
// PAIR-NEXT: ft.mul {{.*}}layer = "b", phase = "backward"
// PAIR-NOT: phase = "recompute"
// PAIR: return

// NONE-LABEL: func.func @train_step
// NONE-NOT: recompute
// NONE: remat = "keep"

func.func @train_step(%in: tensor<4x8xf32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %wa = ft.get @wa {layer = "a", phase = "forward"} : tensor<8x8xf32>
  %wb = ft.get @wb {layer = "b", phase = "forward"} : tensor<8x8xf32>
  %x = ft.scale %in, 2.0 {layer = "embed", phase = "forward"} : tensor<4x8xf32>
  %a1 = ft.matmul %x, %wa {layer = "a", phase = "forward"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %a2 = ft.silu %a1 {layer = "a", phase = "forward"} : tensor<4x8xf32>
  %a3 = ft.mul %a2, %x {layer = "a", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %b1 = ft.matmul %a3, %wb {layer = "b", phase = "forward"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b2 = ft.silu %b1 {layer = "b", phase = "forward"} : tensor<4x8xf32>
  %b3 = ft.mul %b2, %a3 {layer = "b", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %loss = ft.reduce "sum" %b3 over [0, 1] {layer = "head", phase = "forward"} : tensor<4x8xf32> -> tensor<f32>
  %one = ft.fill 1.0 {layer = "head", phase = "backward"} : tensor<f32>
  %d = ft.maximum %b3, %one {layer = "head", phase = "backward"} : tensor<4x8xf32>, tensor<f32>
  %ds = ft.scale %d, 3.0 {layer = "b", phase = "backward"} : tensor<4x8xf32>
  %da = ft.mul %ds, %b2 {layer = "b", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %db2 = ft.mul %d, %a3 {layer = "b", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %db1 = ft.mul %db2, %b1 {layer = "b", phase = "backward"} : tensor<4x8xf32>
  %da3 = ft.matmul %db1, %wb into %da transpose_b {layer = "b", phase = "backward"} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %dwb = ft.matmul %a3, %db1 transpose_a {layer = "b", phase = "backward"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %da2 = ft.mul %da3, %x {layer = "a", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %da1 = ft.mul %da2, %a1 {layer = "a", phase = "backward"} : tensor<4x8xf32>
  %dwa = ft.matmul %x, %da1 transpose_a {layer = "a", phase = "backward"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  ft.gradient @wb, %dwb {layer = "b", phase = "backward"} : tensor<8x8xf32>
  ft.gradient @wa, %dwa {layer = "a", phase = "backward"} : tensor<8x8xf32>
  return %loss : tensor<f32>
}

// Nothing to do where there is no backward.
// EACH-LABEL: func.func @eval_step
// EACH-NOT: remat
func.func @eval_step(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = ft.silu %x {layer = "a", phase = "forward"} : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
