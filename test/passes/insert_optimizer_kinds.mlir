// RUN: ft-opt %s "--ft-insert-optimizer=optimizer=adam weight-decay=0.25 beta2=0.5" --ft-verify-optimizer | FileCheck %s --check-prefixes=CHECK,ADAM
// RUN: ft-opt %s "--ft-insert-optimizer=optimizer=lion" --ft-verify-optimizer | FileCheck %s --check-prefixes=CHECK,LION
// RUN: not ft-opt %s "--ft-insert-optimizer=optimizer=sgd nesterov=true" 2>&1 | FileCheck %s --check-prefix=MOMENTUM
// RUN: not ft-opt %s "--ft-insert-optimizer=eps=0" 2>&1 | FileCheck %s --check-prefix=EPS
// RUN: ft-opt %s "--ft-insert-optimizer=optimizer=sgd momentum=0.5 nesterov=true" --ft-verify-optimizer | FileCheck %s --check-prefixes=CHECK,NESTEROV
// RUN: ft-opt %s "--ft-insert-optimizer=optimizer=sgd loss-scale-window=7 hysteresis=3 min-loss-scale=0.5 dynamic-scale=false" --ft-verify-optimizer | FileCheck %s --check-prefixes=CHECK,SGD
// RUN: ft-opt %s "--ft-insert-optimizer=optimizer=sgd stochastic-rounding=true" --ft-verify-optimizer | FileCheck %s --check-prefix=ROUND
// RUN: not ft-opt %s --ft-insert-optimizer=optimizer=tiger 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ft-opt %S/make_eval_step.mlir --ft-insert-optimizer 2>&1 | FileCheck %s --check-prefix=ABSENT

// Other optimizers, a loss scale, gradients over micro-steps.

// UNKNOWN: error: unknown optimizer 'tiger'; one of adamw, adam, sgd, lion, muon
// MOMENTUM: error: nesterov wants a momentum above 0
// EPS: error: eps is 0; adamw wants 1.2e-38 or more
// ABSENT: error: no flat gradients in @train_step; run ft-form-units first

ft.unit @block {elements = 1024 : i64}
ft.unit @head {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "block", offset = 0 : i64, unit = @block}
ft.parameter @h : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "head", no_decay, offset = 0 : i64, unit = @head}

// What rounds stochastically reads the generator, of which the module has only one.
// ROUND-LABEL: func.func @init
// ROUND: ft.init @w, %{{.*}} {phase = "init"}
// ROUND: ft.init @h, %{{.*}} {phase = "init"}
// ROUND-LABEL: func.func @train_step
// ROUND-NEXT: %[[RNG:.*]] = ft.input "rng"
// ROUND-NOT: ft.input "rng"
// ROUND: ft.update @head by @sgd({{.*}}, {{.*}}, %[[RNG]], %step) states []
// ROUND: ft.update @block by @sgd({{.*}}, {{.*}}, %[[RNG]], %step) states []

// CHECK-LABEL: func.func @train_step
// CHECK-SAME:    -> (tensor<f32>, tensor<f32>)
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  // CHECK-NEXT: %[[INVERSE:.*]] = ft.input "inverse_ranks"
  %loss = ft.fill 1.0 : tensor<f32>
  // CHECK: %[[SCALER:.*]] = ft.input "scaler"
  %scaler = ft.input "scaler" {phase = "backward"} : tensor<3xf32>
  %seed = ft.loss_scale %scaler factor 0.25 {phase = "backward"} : (tensor<3xf32>) -> tensor<f32>
  %gh = ft.fill 2.0 : tensor<4xf32>
  // CHECK: %[[PACK:.*]] = ft.pack {{.*}} at [@h]
  // CHECK-NEXT: %[[HEAD:.*]] = ft.accumulated %[[PACK]] from "head"
  %p = ft.pack %gh at [@h] {layer = "head", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@head, f32>
  %head = ft.accumulated %p from "head" {layer = "head", phase = "backward"} : !ft.flat<@head, f32>
  %rng = ft.input "rng" : tensor<3xi64>
  %gw = ft.dropout %gh, %rng rate 0.5 stream 2 : tensor<4xf32>, tensor<3xi64>
  // CHECK: %[[BLOCK:.*]] = ft.pack {{.*}} at [@w]
  %block = ft.pack %gw at [@w] {layer = "block", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@block, f32>
  // CHECK-NEXT: ft.mul %{{.*}}, %[[INVERSE]] {phase = "optimizer"}
  // CHECK-NEXT: %[[S0:.*]] = ft.sum_squares %[[HEAD]] times %[[INVERSE]] {
  // CHECK-NEXT: %[[S1:.*]] = ft.sum_squares %[[BLOCK]] times %[[INVERSE]] into %[[S0]]
  // CHECK-NEXT: %[[NORM:.*]], %[[C:.*]] = ft.clip_coefficient %[[S1]] loss %{{.*}} scaler %[[SCALER]]
  // ADAM: %[[S:.*]] = ft.update_scalars %[[C]], {{.*}}formulas = "clip; inverse_ranks; weight_decay; sqrt(1 - 0.5^t); lr / (1 - 0.9^t)"{{.*}}weight_decay = 2.500000e-01
  // ADAM-NEXT: ft.update @head by @adam(%[[HEAD]], %[[S]]) states ["exp_avg", "exp_avg_sq"] {layer = "head", phase = "optimizer"}
  // ADAM-NEXT: ft.update @block by @adam(%[[BLOCK]], %[[S]]) states ["exp_avg", "exp_avg_sq"]
  // LION: ft.update_scalars %[[C]], {{.*}}formulas = "clip; inverse_ranks; 1 - lr * weight_decay; lr"
  // LION-NEXT: ft.update @head by @lion(%[[HEAD]], %{{.*}}) states ["exp_avg"]
  // NESTEROV: ft.update @head by @sgd(%[[HEAD]], %{{.*}}) states ["momentum"]
  // NESTEROV-NEXT: ft.update @block by @sgd(%[[BLOCK]],
  // SGD: ft.update @head by @sgd(%[[HEAD]], %{{.*}}) states []
  // ADAM: ft.update_scaler %[[SCALER]], %[[C]] {backoff_factor = 5.000000e-01 : f64, dynamic = 1 : i64, growth_factor = 2.000000e+00 : f64, growth_interval = 2000 : i64, hysteresis = 1 : i64, min_scale = 0.000000e+00 : f64, phase = "optimizer"}
  // SGD: ft.update_scaler %[[SCALER]], %[[C]] {{{.*}}dynamic = 0 : i64, {{.*}}growth_interval = 7 : i64, hysteresis = 3 : i64, min_scale = 5.000000e-01 : f64
  // CHECK: return %{{.*}}, %[[NORM]] :
  return %loss : tensor<f32>
}
