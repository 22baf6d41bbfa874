// RUN: ft-opt %s --ft-insert-optimizer=clip=0.5 --ft-verify-optimizer | FileCheck %s

ft.unit @block {elements = 3072 : i64}
ft.unit @head {elements = 1024 : i64}
ft.parameter @w : tensor<40x40xf32> = #ft.init<normal, 0.02> {layer = "block", offset = 0 : i64, unit = @block}
ft.parameter @b : tensor<40xf32> = #ft.init<constant, 0.0> {layer = "block", no_decay, offset = 2048 : i64, unit = @block}
ft.parameter @n : tensor<4xf32> = #ft.init<constant, 1.0> {layer = "head", no_decay, offset = 0 : i64, unit = @head}

// The update is a function, in the order of the formulas of the table.
// CHECK-LABEL: func.func private @adamw
// CHECK-SAME:    (%[[G:.*]]: tensor<1024xf32>, %[[P:.*]]: tensor<1024xf32>, %[[M:.*]]: tensor<1024xf32>, %[[V:.*]]: tensor<1024xf32>, %[[CLIP:.*]]: tensor<f32>, %[[INVERSE:.*]]: tensor<f32>, %[[ROOT:.*]]: tensor<f32>, %[[DECAY:.*]]: tensor<f32>, %[[RATE:.*]]: tensor<f32>)
// CHECK-SAME:    attributes {ft.update}
// CHECK-NEXT:    %[[MEAN:.*]] = ft.mul %[[G]], %[[INVERSE]]
// CHECK-NEXT:    %[[CLIPPED:.*]] = ft.mul %[[MEAN]], %[[CLIP]]
// CHECK-NEXT:    %[[D:.*]] = ft.sub %[[CLIPPED]], %[[M]]
// CHECK:         %[[M1:.*]] = ft.add %[[M]],
// CHECK:         %[[V1:.*]] = ft.add
// CHECK:         %[[P1:.*]] = ft.sub
// CHECK-NEXT:    return %[[P1]], %[[M1]], %[[V1]]

// CHECK-LABEL: func.func @init()
// CHECK:         %[[RNG:.*]] = ft.input "rng"
// CHECK:         ft.init @w, %[[RNG]] {phase = "init"}
// CHECK:         ft.init @b, %[[RNG]] {phase = "init"}
// CHECK:         ft.init @n, %[[RNG]] {phase = "init"}

// CHECK-LABEL: func.func @train_step
// CHECK-SAME:    -> (tensor<f32>, tensor<f32>)
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  // CHECK-NEXT: %[[INVERSE:.*]] = ft.input "inverse_ranks" : tensor<f32>
  // CHECK: %[[LOSS:.*]] = ft.fill 1.0 : tensor<f32>
  %loss = ft.fill 1.0 : tensor<f32>
  %gw = ft.fill 4.0 : tensor<40x40xf32>
  %gb = ft.fill 2.0 : tensor<40xf32>
  %gn = ft.fill 2.0 : tensor<4xf32>
  // CHECK: %[[HEAD:.*]] = ft.pack {{.*}} -> !ft.flat<@head, f32>
  %head = ft.pack %gn at [@n] : (tensor<4xf32>) -> !ft.flat<@head, f32>
  // CHECK: %[[BLOCK:.*]] = ft.pack {{.*}} -> !ft.flat<@block, f32>
  %block = ft.pack %gw, %gb at [@w, @b] : (tensor<40x40xf32>, tensor<40xf32>) -> !ft.flat<@block, f32>
  // CHECK: %[[MEAN:.*]] = ft.mul %[[LOSS]], %[[INVERSE]] {phase = "optimizer"}
  // CHECK: %[[S0:.*]] = ft.sum_squares %[[HEAD]] times %[[INVERSE]] {
  // CHECK: %[[S1:.*]] = ft.sum_squares %[[BLOCK]] times %[[INVERSE]] into %[[S0]]
  // CHECK: %[[NORM:.*]], %[[C:.*]] = ft.clip_coefficient %[[S1]] loss %[[MEAN]] {max_norm = 5.000000e-01
  // CHECK: %[[S:.*]] = ft.update_scalars %[[C]], %{{.*}}, %{{.*}}, %[[INVERSE]] {formulas = "clip; inverse_ranks; sqrt(1 - 0.95^t); 1 - lr * weight_decay; lr / (1 - 0.9^t)", phase = "optimizer", weight_decay = 1.000000e-01 : f64}
  // CHECK: ft.update @head by @adamw(%[[HEAD]], %[[S]]) states ["exp_avg", "exp_avg_sq"]
  // CHECK: ft.update @block by @adamw(%[[BLOCK]], %[[S]]) states ["exp_avg", "exp_avg_sq"]
  // CHECK: return %[[MEAN]], %[[NORM]] : tensor<f32>, tensor<f32>
  return %loss : tensor<f32>
}
