// RUN: ft-opt %s | ft-opt | FileCheck %s
// RUN: ft-opt %s --mlir-print-op-generic | ft-opt | FileCheck %s
// RUN: ft-opt %s --cse --canonicalize | FileCheck %s --check-prefix=KEPT

// What a step does besides gradients: optimizers, sums over micro-steps, what counts, whole parameters.

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}

// CHECK-LABEL: func.func @optimizers
func.func @optimizers(%g: !ft.slice<@u, f32>, %flat: !ft.flat<@u, bf16>, %c: tensor<f32>, %lr: tensor<f32>, %step: tensor<i64>) {
  // CHECK: ft.update @u by @adam(%{{.*}}, %{{.*}}) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@u, f32>, tensor<2x1xf32>
  %scalars = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @adam(%g, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@u, f32>, tensor<2x1xf32>
  // CHECK: ft.update @u by @momentum(%{{.*}}, %{{.*}}) states ["momentum"] : !ft.flat<@u, bf16>, tensor<2x1xf32>
  %scalars2 = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @momentum(%flat, %scalars2) states ["momentum"] : !ft.flat<@u, bf16>, tensor<2x1xf32>
  // CHECK: ft.update @u by @sgd(%{{.*}}, %{{.*}}) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>
  %scalars3 = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @sgd(%g, %scalars3) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>
  // CHECK: ft.update @u by @sgd(%{{.*}}, %{{.*}}, %rng, %{{.*}}) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>, tensor<3xi64>, tensor<i64>
  %rng = ft.input "rng" : tensor<3xi64>
  %scalars4 = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @sgd(%g, %scalars4, %rng, %step) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>, tensor<3xi64>, tensor<i64>
  // CHECK: ft.refresh @u{{$}}
  ft.refresh @u
  return
}

// Neither CSE nor dead code elimination may touch what changes a state.
// CHECK-LABEL: func.func @sums
// KEPT-LABEL: func.func @sums
func.func @sums(%flat: !ft.flat<@u, f32>, %slice: !ft.slice<@u, bf16>, %loss: tensor<f32>, %d: tensor<4xf32>) {
  // CHECK: ft.accumulate %{{.*}} into "u" : !ft.flat<@u, f32>
  // KEPT-COUNT-2: ft.accumulate
  ft.accumulate %flat into "u" : !ft.flat<@u, f32>
  ft.accumulate %flat into "u" : !ft.flat<@u, f32>
  // CHECK: %{{.*}} = ft.accumulator "u" : !ft.flat<@u, f32>
  %sum = ft.accumulator "u" : !ft.flat<@u, f32>
  %before = ft.view %sum[@w] : !ft.flat<@u, f32> -> tensor<4xf32>
  %after = ft.add %d, %before : tensor<4xf32>
  %packed = ft.pack %after at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  // CHECK: ft.accumulate %{{.*}} into "u" in_place : !ft.flat<@u, f32>
  ft.accumulate %packed into "u" in_place : !ft.flat<@u, f32>
  // CHECK: ft.accumulate %{{.*}} into "loss" : tensor<f32>
  ft.accumulate %loss into "loss" : tensor<f32>
  // CHECK: ft.accumulated %{{.*}} from "u" : !ft.slice<@u, bf16>
  // KEPT-COUNT-3: ft.accumulated %{{.*}} from "u"
  %0 = ft.accumulated %slice from "u" : !ft.slice<@u, bf16>
  %1 = ft.accumulated %slice from "u" : !ft.slice<@u, bf16>
  // CHECK: ft.accumulated %{{.*}} from "u" in_place : !ft.flat<@u, f32> -> !ft.flat<@u, bf16>
  %3 = ft.accumulated %packed from "u" in_place : !ft.flat<@u, f32> -> !ft.flat<@u, bf16>
  // CHECK: ft.accumulated %{{.*}} from "loss" : tensor<f32>
  %2 = ft.accumulated %loss from "loss" : tensor<f32>
  return
}

// CHECK-LABEL: func.func @counts
func.func @counts(%loss: tensor<f32>, %targets: tensor<2x3xi32>) -> tensor<2xf32> {
  // CHECK: ft.loss_count %{{.*}}, %{{.*}} : (tensor<f32>, tensor<2x3xi32>) -> tensor<2xf32>
  %sum = ft.loss_count %loss, %targets : (tensor<f32>, tensor<2x3xi32>) -> tensor<2xf32>
  // CHECK: %[[N:.*]], %{{.*}} = ft.count_targets %{{.*}} of 5 : (tensor<2x3xi32>) -> (tensor<2xi64>, tensor<f32>)
  %n, %share = ft.count_targets %targets of 5 : (tensor<2x3xi32>) -> (tensor<2xi64>, tensor<f32>)
  // CHECK: ft.counted_mean %[[N]], %{{.*}} : (tensor<2xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %mean, %factor = ft.counted_mean %n, %loss : (tensor<2xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %sum : tensor<2xf32>
}

// CHECK-LABEL: func.func @whole
// KEPT-LABEL: func.func @whole
func.func @whole() {
  %rest = ft.shard @u : !ft.slice<@u, f32>
  // CHECK: ft.fetch %{{.*}} : !ft.slice<@u, f32> -> !ft.flat<@u, f32>
  // KEPT-COUNT-2: ft.fetch
  // KEPT-COUNT-2: ft.release
  %f0 = ft.fetch %rest : !ft.slice<@u, f32> -> !ft.flat<@u, f32>
  %f1 = ft.fetch %rest : !ft.slice<@u, f32> -> !ft.flat<@u, f32>
  ft.release %f0 : !ft.flat<@u, f32>
  ft.release %f1 : !ft.flat<@u, f32>
  return
}
func.func private @adam(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
func.func private @momentum(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  return %p, %m : tensor<1024xf32>, tensor<1024xf32>
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}
