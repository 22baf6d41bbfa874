// RUN: ft-opt %s --ft-make-micro-step=micro-steps=4 | FileCheck %s
// RUN: ft-opt %s --ft-make-micro-step=micro-steps=1 | FileCheck %s --check-prefix=ONE
// RUN: not ft-opt %s --ft-make-micro-step=micro-steps=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not ft-opt %S/make_eval_step.mlir --ft-make-micro-step=micro-steps=4 2>&1 | FileCheck %s --check-prefix=ABSENT

// All micro-steps but the last add their gradients and losses up; the last one takes the sums.

// ZERO: error: a training step has at least one micro-step
// ABSENT: error: no @train_step; run ft-autodiff first

// ONE-NOT: @train_micro
// ONE-NOT: ft.accumulated

// CHECK: module attributes {ft.micro_steps = 4 : i64}
ft.unit @block {elements = 1024 : i64}
ft.unit @head {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "block", offset = 0 : i64, unit = @block}
ft.parameter @h : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "head", offset = 0 : i64, unit = @head}

// CHECK-LABEL: func.func @train_micro
// CHECK-SAME:    (%{{.*}}: tensor<1x2xi32>, %{{.*}}: tensor<1x2xi32>) {
// CHECK:         %[[LOSS:.*]] = ft.fill 1.0
// CHECK:         %[[HEAD:.*]] = ft.pack {{.*}} at [@h]
// CHECK-NEXT:    ft.accumulate %[[HEAD]] into "head" {layer = "head", phase = "backward"} : !ft.flat<@head, f32>
// CHECK:         %[[BLOCK:.*]] = ft.pack {{.*}} at [@w]
// CHECK-NEXT:    ft.accumulate %[[BLOCK]] into "block" {layer = "block", phase = "backward"} : !ft.flat<@block, f32>
// CHECK-NEXT:    ft.accumulate %[[LOSS]] into "loss" {phase = "backward"} : tensor<f32>
// CHECK-NEXT:    return{{$}}

// CHECK-LABEL: func.func @train_step
// CHECK-SAME:    -> tensor<f32> {
// CHECK:         %[[LOSS:.*]] = ft.fill 1.0
// CHECK:         %[[HEAD:.*]] = ft.pack {{.*}} at [@h]
// CHECK-NEXT:    ft.accumulated %[[HEAD]] from "head" {layer = "head", phase = "backward"} : !ft.flat<@head, f32>
// CHECK:         %[[BLOCK:.*]] = ft.pack {{.*}} at [@w]
// CHECK-NEXT:    ft.accumulated %[[BLOCK]] from "block" {layer = "block", phase = "backward"} : !ft.flat<@block, f32>
// CHECK-NEXT:    %[[SUM:.*]] = ft.accumulated %[[LOSS]] from "loss" {phase = "backward"} : tensor<f32>
// CHECK-NEXT:    %[[MEAN:.*]] = ft.scale %[[SUM]], 0.25 {phase = "backward"} : tensor<f32>
// CHECK-NEXT:    return %[[MEAN]] : tensor<f32>
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  %loss = ft.fill 1.0 : tensor<f32>
  %gh = ft.fill 2.0 : tensor<4xf32>
  %head = ft.pack %gh at [@h] {layer = "head", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@head, f32>
  %gw = ft.fill 3.0 : tensor<4xf32>
  %block = ft.pack %gw at [@w] {layer = "block", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@block, f32>
  return %loss : tensor<f32>
}
