// RUN: ft-opt %s --ft-form-units -split-input-file -verify-diagnostics

// expected-error @below {{parameter @w has no gradient}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "block"}
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  %loss = ft.fill 1.0 : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{no @train_step; run ft-autodiff first}}
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "block"}
}
