// RUN: ft-opt %s --ft-round-products=fp8-recipe=tensorwise | FileCheck %s
// RUN: ft-opt %s --ft-round-products=fp8-recipe=blockwise | FileCheck %s --check-prefix=BLOCKS
// RUN: ft-opt %s --ft-round-products -o %t.after
// RUN: ft-opt %s -o %t.before
// RUN: sed 's/, precise}/}/' %t.before | cmp - %t.after
// RUN: not ft-opt %s --ft-round-products=fp8-recipe=rowwise 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: fp8-recipe is 'rowwise'; expected none, tensorwise or blockwise

// CHECK-LABEL: func.func @train_step
// BLOCKS-LABEL: func.func @train_step
func.func @train_step(%x: tensor<2x7x64xbf16>, %w: tensor<64x128xbf16>, %narrow: tensor<64x48xbf16>, %odd: tensor<64x72xbf16>, %x32: tensor<2x7x64xf32>, %w32: tensor<64x128xf32>, %vocabulary: tensor<32x128xbf16>, %targets: tensor<2x7xi32>) {
  // CHECK: %[[H:.*]] = ft.matmul {{.*}}{a_format = "e4m3", b_format = "e4m3", layer = "h.0", phase = "forward", scaling = "tensorwise"}
  // BLOCKS: ft.matmul {{.*}}{a_format = "e4m3", b_format = "e4m3", layer = "h.0", phase = "forward", scaling = "blockwise"}
  %h = ft.matmul %x, %w {layer = "h.0", phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x128xbf16>) -> tensor<2x7x128xbf16>
  // A weight that is too narrow, one whose columns are no multiple of 16, what is in no layer, or in one that there is once, what is precise, of the optimizer, or not bf16.
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {layer = "h.0", phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x48xbf16>)
  %1 = ft.matmul %x, %narrow {layer = "h.0", phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x48xbf16>) -> tensor<2x7x48xbf16>
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {layer = "h.0", phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x72xbf16>)
  %2 = ft.matmul %x, %odd {layer = "h.0", phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x72xbf16>) -> tensor<2x7x72xbf16>
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {phase = "forward"} :
  %3 = ft.matmul %x, %w {phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x128xbf16>) -> tensor<2x7x128xbf16>
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {layer = "h.0", phase = "forward"} :
  %router = ft.matmul %x, %w {layer = "h.0", phase = "forward", precise} : (tensor<2x7x64xbf16>, tensor<64x128xbf16>) -> tensor<2x7x128xbf16>
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {a_format = "e4m3", b_format = "e4m3", layer = "0", phase
  %plain = ft.matmul %x, %w {layer = "0", phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x128xbf16>) -> tensor<2x7x128xbf16>
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {layer = "head", phase = "forward"} :
  %head = ft.matmul %x, %w {layer = "head", phase = "forward"} : (tensor<2x7x64xbf16>, tensor<64x128xbf16>) -> tensor<2x7x128xbf16>
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {layer = "h.0", phase = "optimizer"} :
  %4 = ft.matmul %x, %w {layer = "h.0", phase = "optimizer"} : (tensor<2x7x64xbf16>, tensor<64x128xbf16>) -> tensor<2x7x128xbf16>
  // CHECK-NEXT: ft.matmul %{{.*}}, %{{.*}} {layer = "h.0", phase = "forward"} : (tensor<2x7x64xf32>
  %5 = ft.matmul %x32, %w32 {layer = "h.0", phase = "forward"} : (tensor<2x7x64xf32>, tensor<64x128xf32>) -> tensor<2x7x128xf32>
  // What forward made is computed again as it was, gradients of activations span more magnitudes.
  // CHECK: ft.matmul {{.*}}{a_format = "e4m3", b_format = "e4m3", layer = "h.0", phase = "recompute", scaling = "tensorwise"}
  %again = ft.matmul %x, %w {layer = "h.0", phase = "recompute"} : (tensor<2x7x64xbf16>, tensor<64x128xbf16>) -> tensor<2x7x128xbf16>
  // CHECK: %[[DY:.*]] = ft.exp
  %dy = ft.exp %again {layer = "h.0", phase = "backward"} : tensor<2x7x128xbf16>
  // CHECK: ft.matmul %[[DY]], {{.*}}transpose_b {a_format = "e5m2", b_format = "e4m3", {{.*}}scaling = "tensorwise"}
  // BLOCKS: ft.matmul {{.*}}transpose_b {a_format = "e4m3", b_format = "e4m3", {{.*}}scaling = "blockwise"}
  %dx = ft.matmul %dy, %w transpose_b {layer = "h.0", phase = "backward"} : (tensor<2x7x128xbf16>, tensor<64x128xbf16>) -> tensor<2x7x64xbf16>
  // A weight that is moved is one still.
  // CHECK: ft.transpose
  // CHECK-NEXT: ft.matmul %[[DY]], {{.*}} {a_format = "e5m2", b_format = "e4m3", {{.*}}scaling = "tensorwise"}
  %wt = ft.transpose %w [1, 0] {layer = "h.0", phase = "backward"} : tensor<64x128xbf16> -> tensor<128x64xbf16>
  %dx2 = ft.matmul %dy, %wt {layer = "h.0", phase = "backward"} : (tensor<2x7x128xbf16>, tensor<128x64xbf16>) -> tensor<2x7x64xbf16>
  // What the loss makes on its way is a gradient, too; of two nobody is wide.
  // CHECK: %{{.*}}, %[[DL:.*]], %{{.*}} = ft.linear_cross_entropy_loss_grad
  // CHECK-NEXT: ft.matmul %[[DL]], {{.*}}a_format = "e5m2", b_format = "e4m3", {{.*}}scaling = "tensorwise"}
  // CHECK-NEXT: ft.matmul %[[DY]], {{.*}}a_format = "e4m3", b_format = "e4m3", {{.*}}scaling = "tensorwise"}
  %loss, %dl, %dhead = ft.linear_cross_entropy_loss_grad %again, %vocabulary, %targets dloss 1.0 {layer = "head", phase = "forward"} : (tensor<2x7x128xbf16>, tensor<32x128xbf16>, tensor<2x7xi32>) -> (tensor<f32>, tensor<2x7x128xbf16>, tensor<32x128xbf16>)
  %dx3 = ft.matmul %dl, %w transpose_b {layer = "h.0", phase = "backward"} : (tensor<2x7x128xbf16>, tensor<64x128xbf16>) -> tensor<2x7x64xbf16>
  %square = ft.matmul %dy, %dl transpose_a {layer = "h.0", phase = "backward"} : (tensor<2x7x128xbf16>, tensor<2x7x128xbf16>) -> tensor<128x128xf32>
  // CHECK: ft.matmul {{.*}}, %[[DY]] transpose_a {a_format = "e4m3", b_format = "e5m2", {{.*}}scaling = "tensorwise"}
  %dw = ft.matmul %x, %dy transpose_a {layer = "h.0", phase = "backward"} : (tensor<2x7x64xbf16>, tensor<2x7x128xbf16>) -> tensor<64x128xf32>
  // CHECK: ft.matmul %[[DY]], {{.*}} transpose_a {a_format = "e5m2", b_format = "e4m3", {{.*}}scaling = "tensorwise"}
  %dwt = ft.matmul %dy, %x transpose_a {layer = "h.0", phase = "backward"} : (tensor<2x7x128xbf16>, tensor<2x7x64xbf16>) -> tensor<128x64xf32>
  return
}
