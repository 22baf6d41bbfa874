// RUN: ft-opt %s --ft-verify-optimizer -split-input-file -verify-diagnostics

// The first one is as it should be.
ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
// expected-error @below {{@init does not draw parameter @w}}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  // expected-error @below {{@w is drawn twice}}
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  // expected-error @below {{no ft.update takes this flat gradient}}
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  return %loss, %norm : tensor<f32>, tensor<f32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %loss, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  // expected-error @below {{must take scalars of the coefficient of the gradient norm}}
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %zero = ft.all_reduce %s over world : tensor<21xi64>
  // expected-error @below {{takes a sum that is no chain of ft.sum_squares}}
  %norm, %c = ft.clip_coefficient %zero {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  // expected-error @below {{must return the loss and the gradient norm}}
  return %loss, %loss : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> tensor<f32> {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  // expected-error @below {{must return the loss and the gradient norm}}
  return %loss : tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
// expected-error @below {{needs one ft.clip_coefficient}}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %norm2, %c2 = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  // expected-error @below {{takes a flat gradient that another one has taken}}
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  %scalars2 = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @sgd(%p, %scalars2) states [] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step(%targets: tensor<3xi32>) -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %count, %share = ft.count_targets %targets of 3 : (tensor<3xi32>) -> (tensor<2xi64>, tensor<f32>)
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @sgd(%p, %scalars) states [] : !ft.flat<@u, f32>, tensor<2x2xf32>
  // expected-error @below {{the loss counts targets, and not all that count are divided by}}
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  // expected-error @below {{the loss must be made a mean over ranks: a product with ft.input "inverse_ranks"}}
  return %sum, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p : (!ft.flat<@u, f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  // expected-error @below {{makes a mean of what others take for one}}
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  // expected-error @below {{takes another factor of gradients than ft.input "inverse_ranks"}}
  %s = ft.sum_squares %p times %sum : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  // expected-error @below {{takes for a mean what others make one of}}
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x1xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p : (!ft.flat<@u, f32>) -> tensor<21xi64>
  // expected-error @below {{is of sums over ranks: neither what reads gradients nor backward divides by them}}
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x1xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  // As it should be: what backward begins with is the mean.
  %one = ft.fill 1.0 : tensor<4xf32>
  %g = ft.mul %one, %n : tensor<4xf32>, tensor<f32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p : (!ft.flat<@u, f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x1xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %one = ft.fill 1.0 : tensor<4xf32>
  // expected-error @below {{'ft.mul' op makes a mean of what the optimizer makes one of}}
  %g = ft.mul %one, %n : tensor<4xf32>, tensor<f32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  // expected-error @below {{'ft.input' op is there twice}}
  %again = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %g = ft.fill 1.0 : tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p times %n : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip; inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x2xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x2xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>, %n: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %mean = ft.mul %g, %n : tensor<1024xf32>, tensor<f32>
  %step = ft.mul %mean, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

// Backward may begin in several places: a loss of two terms.
ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  ft.init @w, %rng : tensor<3xi64>
  return
}
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %n = ft.input "inverse_ranks" : tensor<f32>
  %sum = ft.fill 1.0 : tensor<f32>
  %loss = ft.mul %sum, %n : tensor<f32>, tensor<f32>
  %one = ft.fill 1.0 : tensor<4xf32>
  %a = ft.mul %one, %n : tensor<4xf32>, tensor<f32>
  %b = ft.mul %one, %n : tensor<4xf32>, tensor<f32>
  %g = ft.add %a, %b : tensor<4xf32>, tensor<4xf32>
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %s = ft.sum_squares %p : (!ft.flat<@u, f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %s {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  ft.update @u by @adamw(%p, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x1xf32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
