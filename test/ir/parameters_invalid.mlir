// RUN: ft-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected ::mlir::ft::InitKind to be one of: normal, constant, uniform}}
// expected-error @below {{failed to parse Ft_InitAttr parameter 'kind'}}
ft.parameter @w : tensor<4xf32> = #ft.init<gamma, 1.0>

// -----

// expected-error @below {{the standard deviation of an initialiser is -1.000000e+00, it cannot be negative}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, -1.0>

// -----

// expected-error @below {{the bound of an initialiser is -1.000000e+00, it cannot be negative}}
ft.parameter @w : tensor<4xf32> = #ft.init<uniform, -1.0>

// -----

// expected-error @below {{the number of an initialiser is nan; expected a finite one}}
ft.parameter @w : tensor<4xf32> = #ft.init<constant, 0x7FF8000000000000>

// -----

// expected-error @below {{'ft.parameter' op attribute 'type' failed to satisfy constraint: type attribute of tensor of 32-bit float or bfloat16 type or 16-bit float}}
ft.parameter @w : tensor<4xi32> = #ft.init<normal, 1.0>

// -----

// expected-error @below {{failed to satisfy constraint: type attribute of tensor of 32-bit float or bfloat16 type or 16-bit float with at most 8 positive static dimensions}}
ft.parameter @w : tensor<?xf32> = #ft.init<normal, 1.0>

// -----

// expected-error @below {{has a unit but no offset; expected both or neither}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 1.0> {unit = @u}

// -----

// expected-error @below {{offset is 100; expected a multiple of 1024}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 1.0> {unit = @u, offset = 100 : i64}

// -----

// expected-error @below {{elements is 1000; expected a positive multiple of 1024}}
ft.unit @u {elements = 1000 : i64}

// -----

ft.parameter @"transformer.wte.weight" : tensor<8x4xf32> = #ft.init<normal, 0.02>
func.func @unknown() {
  // expected-error @below {{'ft.get' op there is no ft.parameter @transformer.wpe.weight; did you mean @transformer.wte.weight?}}
  %0 = ft.get @transformer.wpe.weight : tensor<8x4xf32>
  return
}

// -----

func.func @nothing_like_it() {
  // expected-error @below {{'ft.get' op there is no ft.parameter @w}}
  %0 = ft.get @w : tensor<8x4xf32>
  return
}

// -----

ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 0.02>
func.func @type(%g: tensor<4x8xf32>) {
  // expected-error @below {{'ft.get' op has type 'tensor<4x8xf32>' but @w is 'tensor<8x4xf32>'}}
  %0 = ft.get @w : tensor<4x8xf32>
  return
}

// -----

ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 0.02>
func.func @gradient(%g: tensor<4x8xf32>) {
  // expected-error @below {{'ft.gradient' op has type 'tensor<4x8xf32>' but @w is 'tensor<8x4xf32>'}}
  ft.gradient @w, %g : tensor<4x8xf32>
  return
}

// -----

func.func @input() {
  // expected-error @below {{there is no input "stp"; did you mean "step"?}}
  %0 = ft.input "stp" : tensor<i64>
  return
}

// -----

func.func @unknown_input() {
  // expected-error @below {{there is no input "temperature"; inputs are rng, lr, step}}
  %0 = ft.input "temperature" : tensor<f32>
  return
}

// -----

func.func @input_type() {
  // expected-error @below {{"lr" is 'tensor<1xf32>'; expected 'tensor<f32>'}}
  %0 = ft.input "lr" : tensor<1xf32>
  return
}

// -----

ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
func.func @init(%rng: tensor<2xi64>) {
  // expected-error @below {{'ft.init' op rng is 'tensor<2xi64>'; expected 'tensor<3xi64>': seed, step, rank}}
  ft.init @w, %rng : tensor<2xi64>
  return
}

// -----

func.func @init_unknown(%rng: tensor<3xi64>) {
  // expected-error @below {{'ft.init' op there is no ft.parameter @w}}
  ft.init @w, %rng : tensor<3xi64>
  return
}
