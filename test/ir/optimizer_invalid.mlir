// RUN: ft-opt %s -split-input-file -verify-diagnostics

ft.unit @u {elements = 1024 : i64}
func.func @adam_beta(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{beta1 is -1.000000e-01; expected 0 or more, below 1}}
  ft.adam @u, %g, %c, %c, %step {beta1 = -0.1, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1, segments = array<i64>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @adam_eps(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{eps is -1.000000e-08; expected 0 or more}}
  ft.adam @u, %g, %c, %c, %step {beta1 = 0.9, beta2 = 0.95, eps = -1.0e-8, weight_decay = 0.1, segments = array<i64>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @momentum(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{momentum is 1.000000e+00; expected 0 or more, below 1}}
  ft.sgd @u, %g, %c, %c, %step {momentum = 1.0, weight_decay = 0.0, segments = array<i64>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @decay(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{weight_decay is -1.000000e+00; expected 0 or more}}
  ft.sgd @u, %g, %c, %c, %step {momentum = 0.0, weight_decay = -1.0, segments = array<i64>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @other_unit(%g: !ft.slice<@v, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{updates unit @u with a gradient of @v}}
  ft.sgd @u, %g, %c, %c, %step {momentum = 0.0, weight_decay = 0.0, segments = array<i64>}
    : !ft.slice<@v, f32>, tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @segments(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{segment 0 is 0, 1025, 1; expected begin < end after 0 and within the unit's 1024 elements, and decay 0 or 1}}
  ft.adam @u, %g, %c, %c, %step {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1, segments = array<i64: 0, 1025, 1>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

func.func @no_unit() {
  // expected-error @below {{there is no ft.unit @u}}
  ft.refresh @u
  return
}

// -----

func.func @fetch(%s: !ft.slice<@u, f32>) {
  // expected-error @below {{takes unit @u but gives unit @v}}
  %0 = ft.fetch %s : !ft.slice<@u, f32> -> !ft.flat<@v, f32>
  return
}

// -----

func.func @dropout(%x: tensor<4xf32>, %rng: tensor<3xi64>) {
  // expected-error @below {{rate is 1.000000e+00; expected 0 or more, below 1}}
  %0 = ft.dropout %x, %rng rate 1.0 stream 2 : tensor<4xf32>, tensor<3xi64>
  return
}

// -----

func.func @rng(%x: tensor<4xf32>, %rng: tensor<2xi64>) {
  // expected-error @below {{rng is 'tensor<2xi64>'; expected 'tensor<3xi64>': seed, step, rank}}
  %0 = ft.dropout %x, %rng rate 0.5 stream 2 : tensor<4xf32>, tensor<2xi64>
  return
}

// -----

func.func @drain(%x: tensor<f32>) {
  // expected-error @below {{failed to verify that all of {x, result} have same type}}
  %0 = "ft.drain"(%x) {name = "loss"} : (tensor<f32>) -> tensor<1xf32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @rounding_without_rng(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{takes rng exactly with stochastic_rounding}}
  ft.sgd @u, %g, %c, %c, %step {momentum = 0.0, weight_decay = 0.0, segments = array<i64: 0, 4, 1>, stochastic_rounding = array<i64: 3>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @rounding_streams(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>, %rng: tensor<3xi64>) {
  // expected-error @below {{stochastic_rounding has 2 streams for 1 segments}}
  ft.sgd @u, %g, %c, %c, %step rng %rng {momentum = 0.0, weight_decay = 0.0, segments = array<i64: 0, 4, 1>, stochastic_rounding = array<i64: 3, 4>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<3xi64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @rounding_stream(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>, %rng: tensor<3xi64>) {
  // expected-error @below {{a stream of stochastic_rounding is -1.000000e+00; expected 0 or more, below 2^31}}
  ft.sgd @u, %g, %c, %c, %step rng %rng {momentum = 0.0, weight_decay = 0.0, segments = array<i64: 0, 4, 1>, stochastic_rounding = array<i64: -1>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<3xi64>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @rounding_rng(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>, %rng: tensor<2xi64>) {
  // expected-error @below {{rng is 2; expected 3, seed, micro-step, rank}}
  ft.sgd @u, %g, %c, %c, %step rng %rng {momentum = 0.0, weight_decay = 0.0, segments = array<i64: 0, 4, 1>, stochastic_rounding = array<i64: 1>}
    : !ft.slice<@u, f32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<2xi64>
  return
}
