// RUN: ft-opt %s --ft-lower-to-ftx --ftx-verify-schedule --ftx-assign-live-ranges --ftx-verify-live-ranges | FileCheck %s

// Scratch is planned for the CPU and, where another size is wanted there, for CUDA devices. A kernel that wants none on
// either has no buffer.

ft.unit @h {elements = 1024 : i64}
ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "h", offset = 0 : i64, unit = @h}
// CHECK-LABEL: ftx.program @train_step
func.func @train_step(%tokens: tensor<2x4xi32>, %x: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>) {
  %s = ft.shard @h : !ft.slice<@h, f32>
  %w = ft.view %s[@w] : !ft.slice<@h, f32> -> tensor<8x8xf32>
  // CHECK: %[[NONE:.*]] = ftx.buffer "h.matmul.workspace" workspace constant(0) cuda(33554432) live [0, 0] {layer = "h"}
  // CHECK-NEXT: ftx.kernel "matmul" on compute {{.*}} workspace(%[[NONE]]) with {{.*}} flops = 1024 : i64, layer = "h", model_flops = 1024 : i64
  %y = ft.matmul %x, %w {layer = "h"} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  // A size of its own for each product, one after the other.
  // CHECK: %[[AGAIN:.*]] = ftx.buffer "h.matmul.workspace.2" workspace constant(0) cuda(33554432) live [1, 1]
  // CHECK: workspace(%[[AGAIN]])
  %z = ft.matmul %y, %w {layer = "h"} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  // CHECK-NOT: workspace
  // CHECK: ftx.kernel "silu" on compute {{.*}} {bytes = 512 : i64, flops = 64 : i64, layer = "h"}
  %g = ft.silu %z {layer = "h"} : tensor<2x4x8xf32>
  %b = ft.reduce "sum" %g over [0, 1] {layer = "h"} : tensor<2x4x8xf32> -> tensor<8xf32>
  return %g, %b : tensor<2x4x8xf32>, tensor<8xf32>
}
