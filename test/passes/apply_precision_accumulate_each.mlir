// RUN: ft-opt %s "--ft-apply-precision=param-dtype=bf16 reduce-dtype=bf16" --ft-verify-precision | FileCheck %s

// What each micro-step reduces has the type of the reduction; the sum of slices, the unit's `accumulate`, f32, is not seen here.

// CHECK: ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = bf16,
ft.unit @u {elements = 1024 : i64, residency = #ft.residency<parameters = slice, gathered = released, gradients = slice, optimizer = slice>}
ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02> {layer = "u", offset = 0 : i64, unit = @u}

func.func @train_micro(%x: tensor<2x8xf32>) {
  // CHECK: ft.matmul {{.*}} -> tensor<8x8xbf16>
  // CHECK: ft.accumulate %{{.*}} into "u" : !ft.slice<@u, bf16>
  %dw = ft.matmul %x, %x transpose_a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %g = ft.pack %dw at [@w] : (tensor<8x8xf32>) -> !ft.flat<@u, f32>
  %s = ft.reduce_scatter %g : !ft.flat<@u, f32> -> !ft.slice<@u, f32>
  ft.accumulate %s into "u" : !ft.slice<@u, f32>
  return
}

func.func @train_step(%x: tensor<2x8xf32>) {
  // CHECK: ft.accumulated %{{.*}} from "u" : !ft.slice<@u, bf16>{{$}}
  %dw = ft.matmul %x, %x transpose_a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %g = ft.pack %dw at [@w] : (tensor<8x8xf32>) -> !ft.flat<@u, f32>
  %s = ft.reduce_scatter %g : !ft.flat<@u, f32> -> !ft.slice<@u, f32>
  %all = ft.accumulated %s from "u" : !ft.slice<@u, f32>
  return
}
