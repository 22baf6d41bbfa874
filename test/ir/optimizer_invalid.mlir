// RUN: ft-opt %s -split-input-file -verify-diagnostics

ft.unit @u {elements = 1024 : i64}
func.func @decay(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{weight_decay is -1.000000e+00; expected 0 or more}}
  %scalars = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = -1.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @sgd(%g, %scalars) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>
  return
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @other_unit(%g: !ft.slice<@v, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  %scalars = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  // expected-error @below {{updates unit @u with a gradient of @v}}
  ft.update @u by @sgd(%g, %scalars) states [] : !ft.slice<@v, f32>, tensor<2x1xf32>
  return
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
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

func.func @accumulated(%x: tensor<f32>) {
  // expected-error @below {{takes 'tensor<f32>' but gives 'tensor<1xf32>'; only the elements of a flat gradient may be of another type}}
  %0 = "ft.accumulated"(%x) {name = "loss"} : (tensor<f32>) -> tensor<1xf32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @rounding_without_step(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>, %rng: tensor<3xi64>) {
  %scalars = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  // expected-error @below {{takes rng and step beside gradient and scalars, or neither}}
  ft.update @u by @sgd(%g, %scalars, %rng) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>, tensor<3xi64>
  return
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @rounding_rng(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>, %rng: tensor<2xi64>) {
  %scalars = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  // expected-error @below {{rng is 2; expected 3, seed, micro-step, rank}}
  ft.update @u by @sgd(%g, %scalars, %rng, %step) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>, tensor<2xi64>, tensor<i64>
  return
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}

// -----

func.func @formulas(%c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{formulas: there is no 'beta' of 0 operands in a formula of a step}}
  %0 = ft.update_scalars %c, %c, %step {formulas = "clip; 1 - beta", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @unbalanced(%c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{formulas: 'lr / (1 - t' needs ')' at character 12}}
  %0 = ft.update_scalars %c, %c, %step {formulas = "clip; lr / (1 - t", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @no_inverse(%c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{has a formula that names inverse_ranks, which it does not take}}
  %0 = ft.update_scalars %c, %c, %step {formulas = "clip; inverse_ranks", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @unread_inverse(%c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{takes inverse_ranks, which no formula names}}
  %0 = ft.update_scalars %c, %c, %step, %c {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @count(%c: tensor<f32>, %step: tensor<i64>) {
  // expected-error @below {{scalars is 2x2; expected 2x1, without and with weight decay, formulas}}
  %0 = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x2xf32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func private @body(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> {
  return %p : tensor<1024xf32>
}
func.func @unmarked(%g: !ft.slice<@u, f32>, %s: tensor<2x1xf32>) {
  // expected-error @below {{runs @body, which has no attribute ft.update}}
  ft.update @u by @body(%g, %s) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func private @body(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  return %p : tensor<1024xf32>
}
func.func @states(%g: !ft.slice<@u, f32>, %s: tensor<2x1xf32>) {
  // expected-error @below {{@body takes 3 arguments, with 1 states and scalars of type 'tensor<2x1xf32>'}}
  ft.update @u by @body(%g, %s) states ["momentum"] : !ft.slice<@u, f32>, tensor<2x1xf32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @other_type(%g: !ft.slice<@u, f32>) {
  // expected-error @below {{only the elements of a flat gradient may be of another type}}
  %0 = ft.accumulated %g from "u" : !ft.slice<@u, f32> -> !ft.slice<@u, bf16>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @not_in_place(%l: tensor<f32>) {
  // expected-error @below {{is in_place, but takes no flat gradient that ft.pack makes}}
  ft.accumulate %l into "loss" in_place : tensor<f32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "u", offset = 0 : i64, unit = @u}
func.func @not_begun(%d: tensor<8xf32>) {
  %g = ft.pack %d at [@w] : (tensor<8xf32>) -> !ft.flat<@u, f32>
  // expected-error @below {{is in_place, but what is packed for @w does not begin with a view of it in ft.accumulator "u" of type '!ft.flat<@u, f32>'}}
  ft.accumulate %g into "u" in_place : !ft.flat<@u, f32>
  return
}

// -----

ft.unit @u {accumulate = bf16, compute = bf16, elements = 1024 : i64}
func.func @other_sum() {
  // expected-error @below {{gives elements of type 'f32'; unit @u adds micro-steps up in 'bf16'}}
  %0 = ft.accumulator "u" : !ft.flat<@u, f32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @other_unit() {
  // expected-error @below {{names the sum of unit "v" but gives that of @u}}
  %0 = ft.accumulator "v" : !ft.flat<@u, f32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "u", offset = 0 : i64, unit = @u}
func.func @begun_elsewhere(%d: tensor<8xf32>) {
  %sum = ft.accumulator "u" : !ft.flat<@u, f32>
  %before = ft.view %sum[@w] : !ft.flat<@u, f32> -> tensor<8xf32>
  %lost = ft.add %d, %before : tensor<8xf32>, tensor<8xf32>
  %g = ft.pack %d at [@w] : (tensor<8xf32>) -> !ft.flat<@u, f32>
  // expected-error @below {{what is packed for @w does not begin with a view of it}}
  ft.accumulate %g into "u" in_place : !ft.flat<@u, f32>
  return
}
