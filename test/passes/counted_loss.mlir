// RUN: ft-opt %s --ft-weigh-loss | FileCheck %s --check-prefix=WEIGHED
// RUN: ft-opt %s --ft-weigh-loss --ft-outline-composites --ft-autodiff --ft-form-units --ft-make-micro-step=micro-steps=2 --ft-insert-optimizer --ft-verify-optimizer --ft-insert-collectives=strategy=full_shard | FileCheck %s
// RUN: not ft-opt %S/form_units.mlir --ft-weigh-loss 2>&1 | FileCheck %s --check-prefix=ABSENT

// A loss that is a mean over targets that count: each rank's micro-step adds what its targets have, and all is divided once by what all of them count.

// ABSENT: error: there is no function @forward of one block that returns the loss

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// WEIGHED-LABEL: func.func @forward
// WEIGHED:         %{{.*}}, %[[SHARE:.*]] = ft.count_targets %{{.*}} of 3 {layer = "head"} : (tensor<3xi32>) -> (tensor<2xi64>, tensor<f32>)
// WEIGHED-NEXT:    %[[LOSS:.*]] = ft.cross_entropy
// WEIGHED-NEXT:    %[[MEAN:.*]] = ft.mul %[[LOSS]], %[[SHARE]] {layer = "head"}
// WEIGHED-NEXT:    return %[[MEAN]]

// CHECK-LABEL: func.func @train_micro
// CHECK:         %[[COUNT:.*]], %[[SHARE:.*]] = ft.count_targets
// CHECK:         ft.accumulate %[[COUNT]] into "counted" {phase = "backward"} : tensor<2xi64>
// CHECK-LABEL: func.func @train_step
// CHECK-SAME:    -> (tensor<f32>, tensor<f32>, tensor<2xi64>)
// CHECK:         %[[COUNT:.*]], %{{.*}} = ft.count_targets
// CHECK:         %[[SUM:.*]] = ft.all_reduce %{{.*}} over world {phase = "forward"} : tensor<f32>
// CHECK:         %[[OWN:.*]] = ft.accumulated %[[COUNT]] from "counted" {phase = "backward"} : tensor<2xi64>
// CHECK-NEXT:    %[[ALL:.*]] = ft.all_reduce %[[OWN]] over world {phase = "forward"} : tensor<2xi64>
// CHECK:         %[[MEAN:.*]] = ft.mul %[[SUM]], %{{.*}} {phase = "optimizer"}
// CHECK:         %[[LOSS:.*]], %[[FACTOR:.*]] = ft.counted_mean %[[ALL]], %[[MEAN]] {phase = "optimizer"}
// CHECK:         ft.clip_coefficient %{{.*}} loss %[[MEAN]] factor %[[FACTOR]]
// CHECK:         return %[[LOSS]], %{{.*}}, %[[ALL]] :
func.func @forward(%tokens: tensor<3xi32>, %targets: tensor<3xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<3xi32>, tensor<16x8xf32>) -> tensor<3x8xf32>
  %loss = ft.cross_entropy %x, %targets {layer = "head"} : (tensor<3x8xf32>, tensor<3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
