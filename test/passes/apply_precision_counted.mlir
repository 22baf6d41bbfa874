// RUN: ft-opt %s "--ft-apply-precision=param-dtype=bf16 reduce-dtype=fp32" --ft-verify-precision | FileCheck %s

// A parameter that is a scalar, and an output as it is.

ft.unit @u {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole>}
ft.parameter @scale : tensor<f32> = #ft.init<constant, 1.0> {offset = 0 : i64, unit = @u}

// CHECK-LABEL: func.func @eval_step
func.func @eval_step(%targets: tensor<2x4xi32>) -> tensor<2xf32> {
  %u = ft.shard @u : !ft.slice<@u, f32>
  // CHECK: %[[S:.*]] = ft.view {{.*}}[@scale] : !ft.slice<@u, bf16> -> tensor<bf16>
  %s = ft.view %u[@scale] : !ft.slice<@u, f32> -> tensor<f32>
  // CHECK: %[[COPY:.*]] = ft.copy %[[S]] : tensor<bf16> -> tensor<f32>
  // CHECK: ft.loss_count %[[COPY]], %{{.*}} : (tensor<f32>, tensor<2x4xi32>) -> tensor<2xf32>
  %sum = ft.loss_count %s, %targets : (tensor<f32>, tensor<2x4xi32>) -> tensor<2xf32>
  return %sum : tensor<2xf32>
}
