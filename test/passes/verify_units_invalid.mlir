// RUN: ft-opt %s --ft-verify-units -split-input-file -verify-diagnostics

// expected-error @below {{parameter @w lies in no unit}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
func.func @train_step() { return }

// -----

// expected-error @below {{unit @u has no parameters}}
ft.unit @u {elements = 1024 : i64}
func.func @train_step() { return }

// -----

ft.unit @u {elements = 2048 : i64}
ft.parameter @v : tensor<2000xf32> = #ft.init<normal, 0.02> {frozen, offset = 0 : i64, unit = @u}
// expected-error @below {{parameter @w begins inside of the one before it in unit @u}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {frozen, offset = 1024 : i64, unit = @u}
func.func @train_step() { return }

// -----

ft.unit @u {elements = 2048 : i64}
ft.parameter @v : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
// expected-error @below {{unit @u holds frozen and trained parameters}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {frozen, offset = 1024 : i64, unit = @u}
func.func @train_step() { return }

// -----

// expected-error @below {{unit @u has 3072 elements; its parameters take 2048}}
ft.unit @u {elements = 3072 : i64}
ft.parameter @v : tensor<1025xf32> = #ft.init<normal, 0.02> {frozen, offset = 0 : i64, unit = @u}
func.func @train_step() { return }

// -----

ft.unit @u {elements = 1024 : i64}
// expected-error @below {{is trained but has no gradient}}
ft.parameter @v : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @train_step() { return }

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @v : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @train_step() {
  %g = ft.fill 1.0 : tensor<4xf32>
  // expected-error @below {{is packed into no unit}}
  ft.gradient @v, %g : tensor<4xf32>
  return
}

// -----

ft.unit @u {elements = 2048 : i64}
ft.parameter @v : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 1024 : i64, unit = @u}
func.func @train_step() {
  %g = ft.fill 1.0 : tensor<4xf32>
  // expected-error @below {{must hold the gradients of all parameters of unit @u}}
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  return
}
