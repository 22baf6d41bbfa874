// RUN: ft-opt %s --split-input-file --verify-diagnostics

ft.unit @h.0 {elements = 1024 : i64}
func.func @unknown() {
  // expected-error @below {{'ft.shard' op there is no ft.unit @h.1; did you mean @h.0?}}
  %0 = ft.shard @h.1 : !ft.slice<@h.1, f32>
  return
}

// -----

ft.unit @a {elements = 1024 : i64}
func.func @shard() {
  // expected-error @below {{names unit @a but gives a slice of @b}}
  %0 = ft.shard @a : !ft.slice<@b, f32>
  return
}

// -----

func.func @gather(%s: !ft.slice<@a, f32>) {
  // expected-error @below {{'ft.gather' op takes unit @a but gives unit @b}}
  %0 = ft.gather %s : !ft.slice<@a, f32> -> !ft.flat<@b, f32>
  return
}

// -----

func.func @scatter(%f: !ft.flat<@a, f32>) {
  // expected-error @below {{'ft.reduce_scatter' op takes elements of type 'f32' but gives 'bf16'}}
  %0 = ft.reduce_scatter %f : !ft.flat<@a, f32> -> !ft.slice<@a, bf16>
  return
}

// -----

func.func @all_reduce(%x: tensor<3xi32>) {
  // expected-error @below {{reduces elements of type 'i32'; expected f32 or i64}}
  %0 = ft.all_reduce %x over world : tensor<3xi32>
  return
}

// -----

ft.unit @a {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {unit = @a, offset = 0 : i64}
func.func @view(%f: !ft.flat<@b, f32>) {
  // expected-error @below {{'ft.view' op @w lies in unit @a, not in @b}}
  %0 = ft.view %f[@w] : !ft.flat<@b, f32> -> tensor<4xf32>
  return
}

// -----

ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
func.func @view_without_unit(%f: !ft.flat<@b, f32>) {
  // expected-error @below {{'ft.view' op @w lies in no unit yet, not in @b}}
  %0 = ft.view %f[@w] : !ft.flat<@b, f32> -> tensor<4xf32>
  return
}

// -----

ft.unit @a {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {unit = @a, offset = 0 : i64}
func.func @view_type(%f: !ft.flat<@a, bf16>) {
  // expected-error @below {{@w is given type 'tensor<4xf32>'; expected 'tensor<4xbf16>'}}
  %0 = ft.view %f[@w] : !ft.flat<@a, bf16> -> tensor<4xf32>
  return
}

// -----

ft.unit @a {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {unit = @a, offset = 0 : i64}
func.func @pack(%x: tensor<4xf32>) {
  // expected-error @below {{has 2 values for 1 parameters}}
  %0 = ft.pack %x, %x at [@w] : (tensor<4xf32>, tensor<4xf32>) -> !ft.flat<@a, f32>
  return
}

// -----

ft.unit @a {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {unit = @a, offset = 0 : i64}
func.func @pack_type(%x: tensor<5xf32>) {
  // expected-error @below {{@w is given type 'tensor<5xf32>'; expected 'tensor<4xf32>'}}
  %0 = ft.pack %x at [@w] : (tensor<5xf32>) -> !ft.flat<@a, f32>
  return
}

// -----

func.func @sum_squares(%f: !ft.flat<@a, f32>) {
  // expected-error @below {{sum is 20; expected 21, the words of an exact sum}}
  %0 = ft.sum_squares %f : (!ft.flat<@a, f32>) -> tensor<20xi64>
  return
}

// -----

func.func @clip(%sum: tensor<21xi64>) {
  // expected-error @below {{max_norm is -1.000000e+00; expected 0 (no clipping) or more}}
  %0, %1 = ft.clip_coefficient %sum {max_norm = -1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

ft.unit @a {elements = 1024 : i64}
func.func @step(%g: !ft.slice<@a, f32>, %c: tensor<f32>, %step: tensor<1xi64>) {
  // expected-error @below {{step is 'tensor<1xi64>'; expected 'tensor<i64>'}}
  %scalars = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2x1xf32>
  ft.update @a by @adamw(%g, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@a, f32>, tensor<2x1xf32>
  return
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

ft.unit @a {elements = 1024 : i64}
func.func @other_unit(%g: !ft.slice<@b, f32>, %c: tensor<f32>, %step: tensor<i64>) {
  %scalars = ft.update_scalars %c, %c, %step {formulas = "clip", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
  // expected-error @below {{updates unit @a with a gradient of @b}}
  ft.update @a by @adamw(%g, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@b, f32>, tensor<2x1xf32>
  return
}
func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// -----

func.func @ranks_not_said(%x: tensor<f32>) {
  // expected-error@+1 {{expected 'over'}}
  %0 = ft.all_reduce %x : tensor<f32>
  return
}

// -----

// expected-error@+2 {{failed to parse Ft_ResidencyAttr parameter 'gathered'}}
// expected-error@+1 {{to be one of: never, until_backward, released}}
ft.unit @u {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = always, gradients = whole, optimizer = whole>}
