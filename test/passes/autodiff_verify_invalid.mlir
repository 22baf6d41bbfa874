// RUN: ft-opt %s --split-input-file --verify-diagnostics --ft-verify-autodiff

// expected-error @below {{there is no function @train_step of one block}}
module {}

// -----

func.func @train_step() -> tensor<f32> {
  // expected-error @below {{needs phase = "forward" or "backward" after differentiation}}
  %loss = ft.fill 0.0 : tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @p : tensor<f32> = #ft.init<normal, 1.0>
func.func @train_step() -> tensor<f32> {
  %one = ft.fill 1.0 {phase = "backward"} : tensor<f32>
  ft.gradient @p, %one {phase = "backward"} : tensor<f32>
  // expected-error @below {{is of the forward phase but comes after an op of the backward phase}}
  %loss = ft.fill 0.0 {phase = "forward"} : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{@p is trained but has no gradient}}
ft.parameter @p : tensor<f32> = #ft.init<normal, 1.0>
func.func @train_step() -> tensor<f32> {
  %loss = ft.fill 0.0 {phase = "forward"} : tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @p : tensor<f32> = #ft.init<normal, 1.0>
func.func @train_step() -> tensor<f32> {
  %loss = ft.fill 0.0 {phase = "forward"} : tensor<f32>
  ft.gradient @p, %loss {phase = "backward"} : tensor<f32>
  // expected-error @below {{is a second gradient of @p}}
  ft.gradient @p, %loss {phase = "backward"} : tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @p : tensor<f32> = #ft.init<normal, 1.0> {frozen}
func.func @train_step() -> tensor<f32> {
  %loss = ft.fill 0.0 {phase = "forward"} : tensor<f32>
  // expected-error @below {{@p is frozen and must have no gradient}}
  ft.gradient @p, %loss {phase = "backward"} : tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @train_step() -> tensor<f32> {
  %loss = ft.fill 0.0 {phase = "forward"} : tensor<f32>
  // expected-error @below {{computes a gradient that nobody uses}}
  %waste = ft.scale %loss, 2.0 {phase = "backward"} : tensor<f32>
  return %loss : tensor<f32>
}
