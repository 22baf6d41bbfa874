// RUN: ft-opt %s --ft-insert-collectives=strategy=full_shard --ft-verify-collectives | FileCheck %s --check-prefix=FULL
// RUN: ft-opt %s --ft-insert-collectives=strategy=zero2 --ft-verify-collectives | FileCheck %s --check-prefix=GRAD
// RUN: ft-opt %s --ft-insert-collectives=strategy=DDP --ft-verify-collectives | FileCheck %s --check-prefix=NONE
// RUN: ft-opt %s --ft-insert-collectives=strategy=full_shard --cse --canonicalize | FileCheck %s --check-prefix=CSE

// The block is used in forward, then another layer, which has a unit too, then it is used again: full_shard gathers it twice, shard_grad_op
// once, no_shard never.

// Neither CSE nor dead code elimination may merge or drop collectives.
// CSE-COUNT-3: ft.gather
// CSE: ft.reduce_scatter
// CSE: ft.update @

ft.unit @block {elements = 1024 : i64}
ft.unit @head {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "block", offset = 0 : i64, unit = @block}
ft.parameter @still : tensor<4xf32> = #ft.init<normal, 0.02> {frozen, layer = "head", offset = 0 : i64, unit = @head}

// FULL-LABEL: func.func @train_step
// GRAD-LABEL: func.func @train_step
// NONE-LABEL: func.func @train_step
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> (tensor<f32>, tensor<f32>) {
  %w = ft.get @w : tensor<4xf32>
  // FULL: %[[SHARD:.*]] = ft.shard @block
  // FULL-NEXT: %[[FLAT:.*]] = ft.gather %[[SHARD]] {layer = "block", phase = "forward"}
  // FULL-NEXT: %[[W:.*]] = ft.view %[[FLAT]][@w]
  // FULL-NEXT: %[[X:.*]] = ft.scale %[[W]]
  // FULL-NEXT: %[[Y:.*]] = ft.mul %[[X]], %[[W]]
  // FULL-NEXT: ft.release %[[FLAT]]
  // GRAD: %[[FLAT:.*]] = ft.gather {{.*}}!ft.flat<@block, f32>
  // NONE: %[[SHARD:.*]] = ft.shard @block
  // NONE-NEXT: ft.view %[[SHARD]][@w]
  %x = ft.scale %w, 2.0 {layer = "block", phase = "forward"} : tensor<4xf32>
  %y = ft.mul %x, %w {layer = "block", phase = "forward"} : tensor<4xf32>, tensor<4xf32>
  // FULL: %[[LOSS:.*]] = ft.reduce "sum"
  // FULL-NEXT: %[[MEAN:.*]] = ft.all_reduce %[[LOSS]] over world {phase = "forward"}
  %still = ft.get @still : tensor<4xf32>
  %z = ft.mul %y, %still {layer = "head", phase = "forward"} : tensor<4xf32>, tensor<4xf32>
  %loss = ft.reduce "sum" %z over [0] {layer = "head", phase = "forward"} : tensor<4xf32> -> tensor<f32>
  // FULL: %[[AGAIN:.*]] = ft.gather {{.*}}phase = "backward"
  // FULL: ft.release %[[AGAIN]]
  // GRAD-NOT: ft.gather {{.*}}!ft.flat<@block, f32>
  // GRAD: ft.release %[[FLAT]]
  // NONE-NOT: ft.gather
  // NONE-NOT: ft.release
  %g = ft.mul %y, %w {layer = "block", phase = "backward"} : tensor<4xf32>, tensor<4xf32>
  // FULL: %[[PACK:.*]] = ft.pack
  // FULL-NEXT: %[[SLICE:.*]] = ft.reduce_scatter %[[PACK]] {layer = "block", phase = "backward"} : !ft.flat<@block, f32> -> !ft.slice<@block, f32>
  // FULL-NEXT: %[[SUM:.*]] = ft.sum_squares %[[SLICE]]
  // FULL-NEXT: %[[TOTAL:.*]] = ft.all_reduce %[[SUM]] over shard {phase = "optimizer"}
  // FULL-NEXT: ft.clip_coefficient %[[TOTAL]]
  // FULL: ft.update @block by @adamw(%[[SLICE]]
  // FULL: return %[[MEAN]]
  // NONE: %[[PACK:.*]] = ft.pack
  // NONE-NEXT: %[[REDUCED:.*]] = ft.all_reduce %[[PACK]] over replica {layer = "block", phase = "backward"}
  // NONE-NEXT: %[[SUM:.*]] = ft.sum_squares %[[REDUCED]]
  // NONE-NEXT: ft.clip_coefficient %[[SUM]]
  %flat = ft.pack %g at [@w] {layer = "block", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@block, f32>
  %sum = ft.sum_squares %flat {phase = "optimizer"} : (!ft.flat<@block, f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %sum {max_norm = 1.0, phase = "optimizer"} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @block by @adamw(%flat, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@block, f32>, tensor<2x1xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
