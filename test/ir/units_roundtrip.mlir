// RUN: ft-opt %s | ft-opt | FileCheck %s
// RUN: ft-opt %s --mlir-print-op-generic | ft-opt | FileCheck %s
// RUN: ft-opt %s --cse --canonicalize --symbol-dce | FileCheck %s --check-prefix=KEPT

// Units, collectives and the optimizer, printed and parsed again.

// CHECK: ft.unit @h.0 {elements = 2048 : i64}
ft.unit @h.0 {elements = 2048 : i64}
ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @h.0}
ft.parameter @b : tensor<4xf32> = #ft.init<constant, 0.0> {offset = 1024 : i64, unit = @h.0}

// CHECK-LABEL: func.func @init
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  // CHECK: ft.init @w, %rng : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}

// CHECK-LABEL: func.func @step
func.func @step(%dw: tensor<8x4xf32>, %db: tensor<4xf32>) -> tensor<f32> {
  // CHECK: ft.shard @h.0 : !ft.slice<@h.0, f32>
  %shard = ft.shard @h.0 : !ft.slice<@h.0, f32>
  // CHECK: ft.gather %{{.*}} : !ft.slice<@h.0, f32> -> !ft.flat<@h.0, f32>
  %flat = ft.gather %shard : !ft.slice<@h.0, f32> -> !ft.flat<@h.0, f32>
  // CHECK: %w = ft.view %{{.*}}[@w] : !ft.flat<@h.0, f32> -> tensor<8x4xf32>
  %w = ft.view %flat[@w] : !ft.flat<@h.0, f32> -> tensor<8x4xf32>
  // CHECK: %b = ft.view %{{.*}}[@b] : !ft.slice<@h.0, f32> -> tensor<4xf32>
  %b = ft.view %shard[@b] : !ft.slice<@h.0, f32> -> tensor<4xf32>
  // CHECK: ft.release %{{.*}} : !ft.flat<@h.0, f32>
  ft.release %flat : !ft.flat<@h.0, f32>
  // CHECK: ft.pack %{{.*}}, %{{.*}} at [@w, @b] : (tensor<8x4xf32>, tensor<4xf32>) -> !ft.flat<@h.0, f32>
  %g = ft.pack %dw, %db at [@w, @b] : (tensor<8x4xf32>, tensor<4xf32>) -> !ft.flat<@h.0, f32>
  // CHECK: ft.reduce_scatter %{{.*}} : !ft.flat<@h.0, f32> -> !ft.slice<@h.0, f32>
  %r = ft.reduce_scatter %g : !ft.flat<@h.0, f32> -> !ft.slice<@h.0, f32>
  // CHECK: ft.all_reduce %{{.*}} over world : !ft.flat<@h.0, f32>
  %a = ft.all_reduce %g over world : !ft.flat<@h.0, f32>
  // CHECK: ft.sum_squares %{{.*}} : (!ft.slice<@h.0, f32>) -> tensor<21xi64>
  %s0 = ft.sum_squares %r : (!ft.slice<@h.0, f32>) -> tensor<21xi64>
  // CHECK: ft.sum_squares %{{.*}} times %{{.*}} into %{{.*}} : (!ft.slice<@h.0, f32>, tensor<f32>, tensor<21xi64>) -> tensor<21xi64>
  %inverse = ft.input "inverse_ranks" : tensor<f32>
  %s2 = ft.sum_squares %r times %inverse into %s0 : (!ft.slice<@h.0, f32>, tensor<f32>, tensor<21xi64>) -> tensor<21xi64>
  // CHECK: ft.sum_squares %{{.*}} into %{{.*}} : (!ft.flat<@h.0, f32>, tensor<21xi64>) -> tensor<21xi64>
  %s1 = ft.sum_squares %a into %s0 : (!ft.flat<@h.0, f32>, tensor<21xi64>) -> tensor<21xi64>
  // CHECK: ft.all_reduce %{{.*}} over world : tensor<21xi64>
  %total = ft.all_reduce %s1 over world : tensor<21xi64>
  // CHECK: ft.clip_coefficient %{{.*}} {max_norm = 1.000000e+00 : f64} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %norm, %coefficient = ft.clip_coefficient %total {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  // CHECK: %[[S:.*]] = ft.update_scalars %{{.*}}, %lr, %step {formulas = "clip", weight_decay = 1.000000e-01 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  // CHECK: ft.update @h.0 by @adamw(%{{.*}}, %[[S]]) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@h.0, f32>, tensor<2x1xf32>
  %scalars = ft.update_scalars %coefficient, %lr, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @h.0 by @adamw(%r, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@h.0, f32>, tensor<2x1xf32>
  return %norm : tensor<f32>
}

// Two gathers of one unit are two buffers with lives of their own, and collectives that nothing uses still happen, on this
// rank as on the others: neither CSE nor dead code elimination may touch them.
// KEPT-LABEL: func.func @identity
func.func @identity(%dw: tensor<8x4xf32>, %db: tensor<4xf32>) {
  %shard = ft.shard @h.0 : !ft.slice<@h.0, f32>
  // KEPT: ft.gather
  // KEPT-NEXT: ft.gather
  %flat0 = ft.gather %shard : !ft.slice<@h.0, f32> -> !ft.flat<@h.0, f32>
  %flat1 = ft.gather %shard : !ft.slice<@h.0, f32> -> !ft.flat<@h.0, f32>
  // KEPT-NEXT: ft.release
  // KEPT-NEXT: ft.release
  ft.release %flat0 : !ft.flat<@h.0, f32>
  ft.release %flat1 : !ft.flat<@h.0, f32>
  %g = ft.pack %dw, %db at [@w, @b] : (tensor<8x4xf32>, tensor<4xf32>) -> !ft.flat<@h.0, f32>
  // KEPT: ft.reduce_scatter
  // KEPT-NEXT: ft.reduce_scatter
  %r0 = ft.reduce_scatter %g : !ft.flat<@h.0, f32> -> !ft.slice<@h.0, f32>
  %r1 = ft.reduce_scatter %g : !ft.flat<@h.0, f32> -> !ft.slice<@h.0, f32>
  // KEPT-NEXT: ft.all_reduce
  // KEPT-NEXT: ft.all_reduce
  %a0 = ft.all_reduce %g over world : !ft.flat<@h.0, f32>
  %a1 = ft.all_reduce %g over world : !ft.flat<@h.0, f32>
  // KEPT-NEXT: return
  return
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
