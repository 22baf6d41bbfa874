// RUN: ft-opt %s "--ft-apply-precision=param-dtype=bf16 reduce-dtype=bf16" --ft-verify-precision | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: ft-opt %s "--ft-apply-precision=param-dtype=bf16 reduce-dtype=bf16 accumulate-dtype=bf16" --ft-verify-precision | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: ft-opt %s "--ft-apply-precision=param-dtype=bf16 reduce-dtype=fp32 accumulate-dtype=bf16" --ft-verify-precision | FileCheck %s --check-prefix=OTHER
// RUN: not ft-opt %s --ft-apply-precision=accumulate-dtype=bf16 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: accumulate-dtype is 'bf16'; expected fp32, or what is computed with, param-dtype 'fp32'

// Gradients are made in the type of their sum, which is rounded to that of the reduction once.

// WIDE: ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = bf16,
// NARROW: ft.unit @u {accumulate = bf16, compute = bf16, elements = 1024 : i64, reduce = bf16,
// OTHER: ft.unit @u {accumulate = bf16, compute = bf16, elements = 1024 : i64, reduce = f32,
ft.unit @u {elements = 1024 : i64, residency = #ft.residency<parameters = slice, gathered = released, gradients = slice, optimizer = slice>}
ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "u", offset = 0 : i64, unit = @u}

// CHECK-LABEL: func.func @train_micro
// OTHER-LABEL: func.func @train_micro
func.func @train_micro(%x: tensor<2x8xf32>) {
  // WIDE: ft.matmul {{.*}} -> tensor<8x8xf32>
  // WIDE: ft.accumulate %{{.*}} into "u" : !ft.flat<@u, f32>
  // NARROW: ft.matmul {{.*}} -> tensor<8x8xbf16>
  // NARROW: ft.accumulate %{{.*}} into "u" : !ft.flat<@u, bf16>
  %dw = ft.matmul %x, %x transpose_a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %g = ft.pack %dw at [@w] : (tensor<8x8xf32>) -> !ft.flat<@u, f32>
  ft.accumulate %g into "u" : !ft.flat<@u, f32>
  return
}

// CHECK-LABEL: func.func @train_step
// OTHER-LABEL: func.func @train_step
func.func @train_step(%x: tensor<2x8xf32>) {
  // WIDE: ft.matmul {{.*}} -> tensor<8x8xf32>
  // WIDE: ft.accumulated %{{.*}} from "u" : !ft.flat<@u, f32> -> !ft.flat<@u, bf16>
  // NARROW: ft.accumulated %{{.*}} from "u" : !ft.flat<@u, bf16>{{$}}
  // OTHER: ft.accumulated %{{.*}} from "u" : !ft.flat<@u, bf16> -> !ft.flat<@u, f32>
  // CHECK: ft.reduce_scatter %{{.*}} : !ft.flat<@u, bf16> -> !ft.slice<@u, bf16>
  %dw = ft.matmul %x, %x transpose_a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %g = ft.pack %dw at [@w] : (tensor<8x8xf32>) -> !ft.flat<@u, f32>
  %all = ft.accumulated %g from "u" : !ft.flat<@u, f32>
  %s = ft.reduce_scatter %all : !ft.flat<@u, f32> -> !ft.slice<@u, f32>
  return
}
