// RUN: ft-opt %s --ft-insert-collectives=strategy=hybrid_shard --ft-verify-collectives | FileCheck %s --check-prefixes=CHECK,LAST
// RUN: ft-opt %s "--ft-insert-collectives=strategy=hybrid_shard accumulate-each=true" --ft-verify-collectives | FileCheck %s --check-prefixes=CHECK,EACH

// Gradients of micro-steps: whole flat gradients are added up and reduced once, or each is reduced and slices are added up.

ft.unit @block {elements = 1024 : i64}
ft.unit @head {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "block", offset = 0 : i64, unit = @block}
ft.parameter @h : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "head", offset = 0 : i64, unit = @head}

// CHECK-LABEL: func.func @train_micro
// LAST: %[[FLAT:.*]] = ft.pack
// LAST-NEXT: ft.accumulate %[[FLAT]] into "head" {{.*}} : !ft.flat<@head, f32>
// EACH: %[[FLAT:.*]] = ft.pack
// EACH-NEXT: %[[PART:.*]] = ft.reduce_scatter %[[FLAT]] {layer = "head", phase = "backward"}
// EACH-NEXT: %[[SLICE:.*]] = ft.all_reduce %[[PART]] over replica {layer = "head", phase = "backward"}
// EACH-NEXT: ft.accumulate %[[SLICE]] into "head" {{.*}} : !ft.slice<@head, f32>
// The loss of a micro-step stays with its rank.
// CHECK-NEXT: ft.accumulate %{{.*}} into "loss" {phase = "backward"} : tensor<f32>
// CHECK-NEXT: return{{$}}
func.func @train_micro(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) {
  %loss = ft.fill 1.0 : tensor<f32>
  %g = ft.fill 2.0 : tensor<4xf32>
  %head = ft.pack %g at [@h] {layer = "head", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@head, f32>
  ft.accumulate %head into "head" {layer = "head", phase = "backward"} : !ft.flat<@head, f32>
  ft.accumulate %loss into "loss" {phase = "backward"} : tensor<f32>
  return
}

// CHECK-LABEL: func.func @train_step
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> (tensor<f32>, tensor<f32>) {
  %loss = ft.fill 1.0 : tensor<f32>
  %g = ft.fill 2.0 : tensor<4xf32>
  // LAST: %[[HEAD:.*]] = ft.pack {{.*}} at [@h]
  // LAST-NEXT: %[[SUM:.*]] = ft.accumulated %[[HEAD]] from "head" {{.*}} : !ft.flat<@head, f32>
  // LAST-NEXT: %[[PART:.*]] = ft.reduce_scatter %[[SUM]]
  // LAST-NEXT: %[[HEADS:.*]] = ft.all_reduce %[[PART]]
  // EACH: %[[HEAD:.*]] = ft.pack {{.*}} at [@h]
  // EACH-NEXT: %[[PART:.*]] = ft.reduce_scatter %[[HEAD]]
  // EACH-NEXT: %[[SLICE:.*]] = ft.all_reduce %[[PART]]
  // EACH-NEXT: %[[HEADS:.*]] = ft.accumulated %[[SLICE]] from "head" {{.*}} : !ft.slice<@head, f32>
  %head = ft.pack %g at [@h] {layer = "head", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@head, f32>
  %heads = ft.accumulated %head from "head" {layer = "head", phase = "backward"} : !ft.flat<@head, f32>
  // LAST: %[[BLOCK:.*]] = ft.pack {{.*}} at [@w]
  // LAST-NEXT: %[[SUM:.*]] = ft.accumulated %[[BLOCK]]
  // LAST-NEXT: ft.reduce_scatter %[[SUM]]
  // LAST-NEXT: %[[BLOCKS:.*]] = ft.all_reduce
  // EACH: %[[BLOCK:.*]] = ft.pack {{.*}} at [@w]
  // EACH-NEXT: ft.reduce_scatter %[[BLOCK]]
  // EACH-NEXT: ft.all_reduce
  // EACH-NEXT: %[[BLOCKS:.*]] = ft.accumulated
  %block = ft.pack %g at [@w] {layer = "block", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@block, f32>
  %blocks = ft.accumulated %block from "block" {layer = "block", phase = "backward"} : !ft.flat<@block, f32>
  // CHECK-NEXT: %[[LOSSES:.*]] = ft.accumulated %{{.*}} from "loss"
  // CHECK-NEXT: %[[LOSS:.*]] = ft.scale %[[LOSSES]], 0.5
  // CHECK-NEXT: %[[MEAN:.*]] = ft.all_reduce %[[LOSS]] over world
  %sum = ft.accumulated %loss from "loss" {phase = "backward"} : tensor<f32>
  %mean = ft.scale %sum, 0.5 {phase = "backward"} : tensor<f32>
  // CHECK: %[[S0:.*]] = ft.sum_squares %[[HEADS]] {{.*}}!ft.slice<@head, f32>
  // CHECK-NEXT: ft.sum_squares %[[BLOCKS]] into %[[S0]]
  %s0 = ft.sum_squares %heads {phase = "optimizer"} : (!ft.flat<@head, f32>) -> tensor<21xi64>
  %s1 = ft.sum_squares %blocks into %s0 {phase = "optimizer"} : (!ft.flat<@block, f32>, tensor<21xi64>) -> tensor<21xi64>
  // CHECK: ft.clip_coefficient %{{.*}} loss %[[MEAN]]
  %norm, %c = ft.clip_coefficient %s1 loss %mean {max_norm = 1.0, phase = "optimizer"} : (tensor<21xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %mean, %norm : tensor<f32>, tensor<f32>
}
