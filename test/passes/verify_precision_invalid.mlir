// RUN: ft-opt %s --ft-verify-precision --split-input-file --verify-diagnostics

// An f32 activation is left.
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, working_copy}
func.func @train_step(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{an activation is 'tensor<8xf32>' after the precision stage; expected elements of type 'bf16'}}
  %m = ft.mul %x, %x : tensor<8xf32>, tensor<8xf32>
  return %m : tensor<8xf32>
}

// -----

// A sum over rows in the reduce type that is no gradient.
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, working_copy}
func.func @train_step(%x: tensor<3x8xbf16>) -> tensor<8xf32> {
  // expected-error @below {{is 'tensor<8xf32>' but is no gradient of a parameter: it is used by func.return}}
  %s = ft.reduce "sum" %x over [0] : tensor<3x8xbf16> -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// Units that differ.
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, working_copy}
// expected-error @below {{computes in 'f16' and reduces in 'f32' but another unit in 'bf16' and 'f32'}}
ft.unit @v {compute = f16, elements = 1024 : i64, reduce = f32, working_copy}

// -----

// expected-error @below {{is never gathered, so it needs a working copy in 'bf16'}}
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole>}

// -----

// expected-error @below {{has a working copy of what is 'f32' already}}
ft.unit @u {elements = 1024 : i64, reduce = bf16, working_copy}

// -----

// A flat gradient in another type.
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, working_copy}
ft.parameter @p : tensor<8xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @train_step(%x: tensor<3x8xbf16>) {
  %s = ft.reduce "sum" %x over [0] : tensor<3x8xbf16> -> tensor<8xbf16>
  // expected-error @below {{a flat gradient is '!ft.flat<@u, bf16>' after the precision stage; expected elements of type 'f32'}}
  %g = ft.pack %s at [@p] : (tensor<8xbf16>) -> !ft.flat<@u, bf16>
  return
}

// -----

// A master is gathered whole.
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole>}
func.func @train_step() {
  %s = ft.shard @u : !ft.slice<@u, f32>
  // expected-error @below {{a gathered unit is '!ft.flat<@u, f32>' after the precision stage; expected elements of type 'bf16'}}
  %f = ft.gather %s : !ft.slice<@u, f32> -> !ft.flat<@u, f32>
  return
}

// -----

// The working copy is not read.
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, working_copy}
func.func @train_step() {
  // expected-error @below {{a working copy is '!ft.slice<@u, f32>' after the precision stage; expected elements of type 'bf16'}}
  %s = ft.shard @u : !ft.slice<@u, f32>
  return
}

// -----

// What is kept alone is what is computed with.
// expected-error @below {{updates weights in 'bf16' but computes in 'f16'}}
ft.unit @u {compute = f16, elements = 1024 : i64, master = bf16, reduce = f32}

// -----

// expected-error @below {{has a working copy of what is 'bf16' already}}
ft.unit @u {compute = bf16, elements = 1024 : i64, master = bf16, reduce = f32, working_copy}

// -----

ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, working_copy}
// expected-error @below {{updates weights in 'bf16' but another unit in 'f32'}}
ft.unit @v {compute = bf16, elements = 1024 : i64, master = bf16, reduce = f32}

// -----

// Only what is rounded can be rounded stochastically.
ft.unit @u {compute = bf16, elements = 1024 : i64, reduce = f32, working_copy}
func.func @train_step(%g: !ft.slice<@u, f32>, %c: tensor<f32>, %step: tensor<i64>, %rng: tensor<3xi64>) {
  %scalars = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  // expected-error @below {{rounds stochastically what is f32; give bf16 weights no master}}
  ft.update @u by @sgd(%g, %scalars, %rng, %step) states [] : !ft.slice<@u, f32>, tensor<2x1xf32>, tensor<3xi64>, tensor<i64>
  return
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}

// -----

// Units that add micro-steps up in different types.
ft.unit @u {accumulate = f32, compute = bf16, elements = 1024 : i64, working_copy}
// expected-error @below {{adds micro-steps up in 'bf16' but another unit in 'f32'}}
ft.unit @v {accumulate = bf16, compute = bf16, elements = 1024 : i64, working_copy}

// -----

// Some gradients are added up, others not.
ft.unit @u {elements = 1024 : i64}
ft.unit @v {elements = 1024 : i64}
ft.parameter @p : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "u", offset = 0 : i64, unit = @u}
ft.parameter @q : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "v", offset = 0 : i64, unit = @v}
func.func @train_step(%x: tensor<8xf32>) {
  %g = ft.pack %x at [@p] : (tensor<8xf32>) -> !ft.flat<@u, f32>
  %sum = ft.accumulated %g from "u" : !ft.flat<@u, f32>
  // expected-error @below {{of the flat gradients of @train_step some are added up over micro-steps and others not}}
  %h = ft.pack %x at [@q] : (tensor<8xf32>) -> !ft.flat<@v, f32>
  return
}

// -----

// What goes into the reduction is of another type.
ft.unit @u {accumulate = f32, compute = bf16, elements = 1024 : i64, reduce = bf16, working_copy}
ft.parameter @p : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "u", offset = 0 : i64, unit = @u}
func.func @train_step(%x: tensor<8xf32>) {
  %d = ft.reduce "sum" %x over [] : tensor<8xf32> -> tensor<8xf32>
  %g = ft.pack %d at [@p] : (tensor<8xf32>) -> !ft.flat<@u, f32>
  // expected-error @below {{a sum over micro-steps is '!ft.flat<@u, f32>' after the precision stage; expected elements of type 'bf16'}}
  %sum = ft.accumulated %g from "u" : !ft.flat<@u, f32>
  return
}
