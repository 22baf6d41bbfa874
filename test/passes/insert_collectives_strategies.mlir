// RUN: ft-opt %s --ft-insert-collectives=strategy=zero1 --ft-verify-collectives | FileCheck %s --check-prefix=ZERO1
// RUN: ft-opt %s --ft-insert-collectives=strategy=hybrid-shard --ft-verify-collectives | FileCheck %s --check-prefix=HYBRID
// RUN: ft-opt %s --ft-insert-collectives=strategy=hybrid_shard_zero2 --ft-verify-collectives | FileCheck %s --check-prefix=HYBRID2
// RUN: ft-opt %s "--ft-insert-collectives=strategy=full_shard keep-gathered=b*" --ft-verify-collectives | FileCheck %s --check-prefix=KEPT
// RUN: ft-opt %s "--ft-insert-collectives=strategy=ddp offload-parameters=true offload-optimizer=true" --ft-verify-collectives | FileCheck %s --check-prefix=HOST
// RUN: ft-opt %s "--ft-insert-collectives=strategy=ddp offload-step=true" --ft-verify-collectives | FileCheck %s --check-prefix=STEP
// RUN: not ft-opt %s --ft-insert-collectives=strategy=zero4 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ft-opt %s "--ft-insert-collectives=strategy=zero3 keep-gathered=b*,c" 2>&1 | FileCheck %s --check-prefix=UNMATCHED

// Units at rest, their copies, and reductions over axes of the mesh.

// UNKNOWN: error: unknown strategy 'zero4'
// UNMATCHED: error: no unit is called 'c', which keep-gathered asks for

// ZERO1: module attributes {ft.shards_gradients = false, ft.shards_optimizer = true, ft.shards_parameters = false, ft.strategy = "zero1", ft.two_axes = false}
// HYBRID: module attributes {ft.shards_gradients = true, ft.shards_optimizer = true, ft.shards_parameters = true, ft.strategy = "hybrid_shard", ft.two_axes = true}
// HOST: module attributes {ft.shards_gradients = false, ft.shards_optimizer = false, ft.shards_parameters = false, ft.strategy = "no_shard", ft.two_axes = false}

// ZERO1: ft.unit @block {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = slice>}
// HYBRID: ft.unit @block {elements = 1024 : i64, residency = #ft.residency<parameters = slice, gathered = released, gradients = slice, optimizer = slice>}
// HYBRID2: ft.unit @block {elements = 1024 : i64, residency = #ft.residency<parameters = slice, gathered = until_backward, gradients = slice, optimizer = slice>}
// KEPT: ft.unit @block {{.*}}gathered = until_backward
// STEP: ft.unit @block {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole, host = optimizer|update>}
// HOST: ft.unit @block {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole, host = parameters|optimizer>}
ft.unit @block {elements = 1024 : i64}
// KEPT: ft.unit @head {{.*}}gathered = released
ft.unit @head {elements = 1024 : i64}
// A unit that stays gathered is so under every strategy that shards parameters.
// HYBRID: ft.unit @small {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = slice, optimizer = slice>, small}
ft.unit @small {elements = 1024 : i64, small}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "block", offset = 0 : i64, unit = @block}
ft.parameter @h : tensor<4xf32> = #ft.init<normal, 0.02> {frozen, layer = "head", offset = 0 : i64, unit = @head}
ft.parameter @s : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "head", offset = 0 : i64, unit = @small}

// ZERO1-LABEL: func.func @train_step
// HYBRID-LABEL: func.func @train_step
// HYBRID2-LABEL: func.func @train_step
// KEPT-LABEL: func.func @train_step
// HOST-LABEL: func.func @train_step
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> (tensor<f32>, tensor<f32>) {
  %w = ft.get @w : tensor<4xf32>
  %h = ft.get @h : tensor<4xf32>
  %s = ft.get @s : tensor<4xf32>
  // ZERO1-NOT: ft.gather
  // HYBRID: %[[FORWARD:.*]] = ft.gather {{.*}} {layer = "block", phase = "forward"} : {{.*}}@block
  // HYBRID: ft.scale
  // HYBRID-NEXT: ft.release %[[FORWARD]]
  // HYBRID2: %[[BLOCK:.*]] = ft.gather {{.*}} -> !ft.flat<@block, f32>
  // KEPT: %[[BLOCK:.*]] = ft.gather {{.*}} -> !ft.flat<@block, f32>
  // HOST: %[[REST:.*]] = ft.shard @block
  // HOST-NEXT: %[[FORWARD:.*]] = ft.fetch %[[REST]] {layer = "block", phase = "forward"}
  // HOST-NEXT: ft.view %[[FORWARD]][@w]
  // HOST-NEXT: ft.scale
  // HOST-NEXT: ft.release %[[FORWARD]] {layer = "block", phase = "forward"}
  %x = ft.scale %w, 2.0 {layer = "block", phase = "forward"} : tensor<4xf32>
  // HYBRID: %[[SMALL:.*]] = ft.shard @small
  // HYBRID-NEXT: ft.view %[[SMALL]][@s] {{.*}} : !ft.slice<@small, f32>
  // KEPT: %[[HEAD:.*]] = ft.gather {{.*}} -> !ft.flat<@head, f32>
  // KEPT: ft.release %[[HEAD]]
  %y = ft.mul %x, %h {layer = "head", phase = "forward"} : tensor<4xf32>, tensor<4xf32>
  %z = ft.mul %y, %s {layer = "head", phase = "forward"} : tensor<4xf32>, tensor<4xf32>
  %loss = ft.reduce "sum" %z over [0] {layer = "head", phase = "forward"} : tensor<4xf32> -> tensor<f32>
  // HYBRID: %[[BACKWARD:.*]] = ft.gather {{.*}} {layer = "block", phase = "backward"} : {{.*}}@block
  // HYBRID: ft.release %[[BACKWARD]]
  // HYBRID2-NOT: ft.gather {{.*}}@block
  // HYBRID2: ft.release %[[BLOCK]] {layer = "block", phase = "backward"}
  // KEPT-NOT: ft.gather {{.*}}@block
  // KEPT: ft.release %[[BLOCK]] {layer = "block", phase = "backward"}
  // HOST: ft.fetch {{.*}}@block
  %g = ft.mul %y, %w {layer = "block", phase = "backward"} : tensor<4xf32>, tensor<4xf32>
  // ZERO1: %[[FLAT:.*]] = ft.pack {{.*}} at [@s]
  // ZERO1-NEXT: %[[SLICE:.*]] = ft.reduce_scatter %[[FLAT]] {layer = "head", phase = "backward"}
  // HYBRID: %[[FLAT:.*]] = ft.pack {{.*}} at [@s]
  // HYBRID-NEXT: %[[PART:.*]] = ft.reduce_scatter %[[FLAT]] {layer = "head", phase = "backward"} : !ft.flat<@small, f32> -> !ft.slice<@small, f32>
  // HYBRID-NEXT: %[[SLICE:.*]] = ft.all_reduce %[[PART]] over replica {layer = "head", phase = "backward"} : !ft.slice<@small, f32>
  // HYBRID2: ft.reduce_scatter {{.*}}@small
  // HYBRID2-NEXT: ft.all_reduce
  // HOST: %[[FLAT:.*]] = ft.pack {{.*}} at [@s]
  // HOST-NEXT: %[[SLICE:.*]] = ft.all_reduce %[[FLAT]] over replica {layer = "head", phase = "backward"}
  %small = ft.pack %g at [@s] {layer = "head", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@small, f32>
  // HYBRID: ft.reduce_scatter {{.*}} -> !ft.slice<@block, f32>
  // HYBRID-NEXT: ft.all_reduce
  %flat = ft.pack %g at [@w] {layer = "block", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@block, f32>
  // Slices are summed over the axis that has them; every replica holds the same ones.
  // ZERO1: %[[S0:.*]] = ft.sum_squares %[[SLICE]]
  // ZERO1-NEXT: %[[S1:.*]] = ft.sum_squares %{{.*}} into %[[S0]]
  // ZERO1-NEXT: ft.all_reduce %[[S1]] over shard {phase = "optimizer"}
  // HYBRID: %[[S0:.*]] = ft.sum_squares %[[SLICE]]
  // HYBRID-NEXT: %[[S1:.*]] = ft.sum_squares %{{.*}} into %[[S0]]
  // HYBRID-NEXT: ft.all_reduce %[[S1]] over shard {phase = "optimizer"}
  // HOST: %[[S0:.*]] = ft.sum_squares %[[SLICE]]
  // HOST-NEXT: ft.sum_squares
  // HOST-NEXT: ft.clip_coefficient
  %s0 = ft.sum_squares %small {phase = "optimizer"} : (!ft.flat<@small, f32>) -> tensor<21xi64>
  %s1 = ft.sum_squares %flat into %s0 {phase = "optimizer"} : (!ft.flat<@block, f32>, tensor<21xi64>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s1 {max_norm = 1.0, phase = "optimizer"} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  // ZERO1: ft.update @small by @sgd(%[[SLICE]]
  // ZERO1-NEXT: ft.refresh @small {layer = "head", phase = "optimizer"}
  // ZERO1: ft.update @block
  // ZERO1-NEXT: ft.refresh @block {layer = "block", phase = "optimizer"}
  // HYBRID: ft.update @small by @sgd(%[[SLICE]]
  // HYBRID-NEXT: ft.refresh @small
  // HYBRID: ft.update @block
  // HYBRID-NEXT: return
  // HOST-NOT: ft.refresh
  %scalars = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.0, phase = "optimizer"} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @small by @sgd(%small, %scalars) states [] {layer = "head", phase = "optimizer"} : !ft.flat<@small, f32>, tensor<2x1xf32>
  %scalars2 = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.0, phase = "optimizer"} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @block by @sgd(%flat, %scalars2) states [] {layer = "block", phase = "optimizer"} : !ft.flat<@block, f32>, tensor<2x1xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}

// What evaluation returns is summed over all ranks; nothing else is reduced.
// HYBRID-LABEL: func.func @eval_step
// HYBRID: %[[SUM:.*]] = ft.loss_count
// HYBRID-NEXT: %[[TOTAL:.*]] = ft.all_reduce %[[SUM]] over world {phase = "forward"} : tensor<2xf32>
// HYBRID-NEXT: return %[[TOTAL]]
func.func @eval_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<2xf32> {
  %loss = ft.fill 1.0 : tensor<f32>
  %sum = ft.loss_count %loss, %targets {layer = "head", phase = "forward"} : (tensor<f32>, tensor<1x2xi32>) -> tensor<2xf32>
  return %sum : tensor<2xf32>
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}
