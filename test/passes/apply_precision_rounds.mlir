// RUN: ft-opt %s "--ft-apply-precision=param-dtype=bf16 reduce-dtype=fp32" --ft-verify-precision | FileCheck %s

// Gradients that only a kernel of activations makes, or that an activation is computed from, are made in the compute type and
// rounded on their way into the flat gradient. Their unit is whole at rest: the working copy is read in place.

ft.unit @u {elements = 2048 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole>}
ft.parameter @p : tensor<8xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
ft.parameter @q : tensor<8xf32> = #ft.init<normal, 0.02> {offset = 1024 : i64, unit = @u}

// CHECK-LABEL: func.func @train_step
func.func @train_step() -> tensor<8xf32> {
  // CHECK: %[[SHARD:.*]] = ft.shard @u : !ft.slice<@u, bf16>
  // CHECK: %[[P:.*]] = ft.view %[[SHARD]][@p] : !ft.slice<@u, bf16> -> tensor<8xbf16>
  %u = ft.shard @u : !ft.slice<@u, f32>
  %p = ft.view %u[@p] : !ft.slice<@u, f32> -> tensor<8xf32>
  // CHECK: %[[DP:.*]] = ft.mul %[[P]], %[[P]] : tensor<8xbf16>, tensor<8xbf16>
  // CHECK: %[[RP:.*]] = ft.copy %[[DP]] {phase = "backward"} : tensor<8xbf16> -> tensor<8xf32>
  %dp = ft.mul %p, %p : tensor<8xf32>, tensor<8xf32>
  // CHECK: %[[DQ:.*]] = ft.fill 1.0 : tensor<8xbf16>
  // CHECK: %[[RQ:.*]] = ft.copy %[[DQ]] {phase = "backward"} : tensor<8xbf16> -> tensor<8xf32>
  // CHECK: %[[OTHER:.*]] = ft.mul %[[P]], %[[DQ]] : tensor<8xbf16>
  %dq = ft.fill 1.0 : tensor<8xf32>
  %other = ft.mul %p, %dq : tensor<8xf32>, tensor<8xf32>
  // CHECK: ft.pack %[[RP]], %[[RQ]] at
  %g = ft.pack %dp, %dq at [@p, @q] {phase = "backward"} : (tensor<8xf32>, tensor<8xf32>) -> !ft.flat<@u, f32>
  %r = ft.all_reduce %g over replica : !ft.flat<@u, f32>
  // CHECK: return %[[OTHER]] : tensor<8xbf16>
  return %other : tensor<8xf32>
}
