// RUN: ft-opt %s --ft-outline-composites --ft-autodiff --ft-verify-autodiff | FileCheck %s --check-prefix=ONE
// RUN: ft-opt %s --ft-outline-composites --ft-autodiff=gradient-factor=0.25 --ft-verify-autodiff | FileCheck %s --check-prefix=QUARTER
// RUN: ft-opt %s --ft-outline-composites "--ft-autodiff=gradient-factor=0.25 loss-scale=true" --ft-verify-autodiff | FileCheck %s --check-prefix=SCALED
// RUN: ft-opt %s --ft-outline-composites --ft-autodiff=mean=true --ft-verify-autodiff | FileCheck %s --check-prefix=MEAN
// RUN: ft-opt %s --ft-outline-composites "--ft-autodiff=gradient-factor=0.25 mean=true" --ft-verify-autodiff | FileCheck %s --check-prefix=MEANQUARTER
// RUN: ft-opt %s --ft-outline-composites "--ft-autodiff=gradient-factor=0.25 loss-scale=true mean=true" --ft-verify-autodiff | FileCheck %s --check-prefix=MEANSCALED

// What backward begins with.

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

func.func @forward(%tokens: tensor<3xi32>, %targets: tensor<3xi32>) -> tensor<f32> {
  %w = ft.get @w {layer = "head"} : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<3xi32>, tensor<16x8xf32>) -> tensor<3x8xf32>
  // ONE: %[[SEED:.*]] = ft.fill 1.0 {layer = "head", phase = "backward"} : tensor<f32>
  // ONE-NEXT: ft.call @cross_entropy.grad(%{{.*}}, %{{.*}}, %[[SEED]])
  // QUARTER: %[[SEED:.*]] = ft.fill 0.25 {layer = "head", phase = "backward"} : tensor<f32>
  // QUARTER-NEXT: ft.call @cross_entropy.grad(%{{.*}}, %{{.*}}, %[[SEED]])
  // SCALED: %[[SCALER:.*]] = ft.input "scaler" {layer = "head", phase = "backward"} : tensor<3xf32>
  // SCALED-NEXT: %[[SEED:.*]] = ft.loss_scale %[[SCALER]] factor 0.25 {layer = "head", phase = "backward"} : (tensor<3xf32>) -> tensor<f32>
  // SCALED-NEXT: ft.call @cross_entropy.grad(%{{.*}}, %{{.*}}, %[[SEED]])
  // MEAN: %[[SEED:.*]] = ft.input "inverse_ranks" {layer = "head", phase = "backward"} : tensor<f32>
  // MEAN-NEXT: ft.call @cross_entropy.grad(%{{.*}}, %{{.*}}, %[[SEED]])
  // MEANQUARTER: %[[INVERSE:.*]] = ft.input "inverse_ranks" {layer = "head", phase = "backward"} : tensor<f32>
  // MEANQUARTER-NEXT: %[[SEED:.*]] = ft.scale %[[INVERSE]], 0.25 {layer = "head", phase = "backward"} : tensor<f32>
  // MEANQUARTER-NEXT: ft.call @cross_entropy.grad(%{{.*}}, %{{.*}}, %[[SEED]])
  // MEANSCALED: %[[INVERSE:.*]] = ft.input "inverse_ranks" {layer = "head", phase = "backward"} : tensor<f32>
  // MEANSCALED: %[[SCALE:.*]] = ft.loss_scale %{{.*}} factor 0.25
  // MEANSCALED-NEXT: %[[SEED:.*]] = ft.mul %[[SCALE]], %[[INVERSE]] {layer = "head", phase = "backward"}
  // MEANSCALED-NEXT: ft.call @cross_entropy.grad(%{{.*}}, %{{.*}}, %[[SEED]])
  %loss = ft.cross_entropy %x, %targets {layer = "head"} : (tensor<3x8xf32>, tensor<3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
