// RUN: ft-opt %s --split-input-file --verify-diagnostics

// Operands of a product have one type, and so has its result, unless it is a sum over rows.

func.func @operands(%a: tensor<3x4xbf16>, %b: tensor<4x5xf32>) {
  // expected-error @below {{'ft.matmul' op b has elements of type 'f32'; expected 'bf16', as a}}
  %0 = ft.matmul %a, %b : (tensor<3x4xbf16>, tensor<4x5xf32>) -> tensor<3x5xbf16>
  return
}

// -----

func.func @bias(%a: tensor<3x4xbf16>, %b: tensor<4x5xbf16>, %bias: tensor<5xf32>) {
  // expected-error @below {{bias has elements of type 'f32'; expected 'bf16', as a}}
  %0 = ft.matmul %a, %b bias %bias : (tensor<3x4xbf16>, tensor<4x5xbf16>, tensor<5xf32>) -> tensor<3x5xbf16>
  return
}

// -----

func.func @result(%a: tensor<3x4xbf16>, %b: tensor<4x5xbf16>) {
  // expected-error @below {{result has elements of type 'f32'; expected 'bf16', as a}}
  %0 = ft.matmul %a, %b : (tensor<3x4xbf16>, tensor<4x5xbf16>) -> tensor<3x5xf32>
  return
}

// -----

func.func @acc(%a: tensor<3x4xbf16>, %b: tensor<3x5xbf16>, %acc: tensor<4x5xbf16>) {
  // expected-error @below {{acc is 'tensor<4x5xbf16>'; expected the type of the result, 'tensor<4x5xf32>'}}
  %0 = ft.matmul %a, %b into %acc transpose_a : (tensor<3x4xbf16>, tensor<3x5xbf16>, tensor<4x5xbf16>) -> tensor<4x5xf32>
  return
}

// -----

func.func @norm(%x: tensor<3x4xbf16>, %w: tensor<4xf32>) {
  // expected-error @below {{'ft.rms_norm' op weight has elements of type 'f32'; expected 'bf16', as x}}
  %0 = ft.rms_norm %x, %w eps 1.0e-5 : tensor<3x4xbf16>, tensor<4xf32>
  return
}

// -----

func.func @embedding(%ids: tensor<3xi32>, %table: tensor<8x4xbf16>) {
  // expected-error @below {{'ft.embedding' op result has elements of type 'f32'; expected 'bf16', as table}}
  %0 = ft.embedding %ids, %table : (tensor<3xi32>, tensor<8x4xbf16>) -> tensor<3x4xf32>
  return
}

// -----

func.func @embedding_grad(%ids: tensor<3xi32>, %dy: tensor<3x4xbf16>, %acc: tensor<8x4xbf16>) {
  // expected-error @below {{acc is 'tensor<8x4xbf16>'; expected the type of dtable, 'tensor<8x4xf32>'}}
  %0 = ft.embedding_grad %ids, %dy into %acc : (tensor<3xi32>, tensor<3x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xf32>
  return
}

// -----

func.func @lse(%q: tensor<2x3x8xbf16>) {
  // expected-error @below {{lse has elements of type 'bf16'; expected f32}}
  %0:2 = ft.attention %q, %q, %q heads 2 kv_heads 2 : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x2x3xbf16>)
  return
}

// -----

func.func @loss(%x: tensor<3x4xbf16>, %w: tensor<8x4xf32>, %targets: tensor<3xi32>) {
  // expected-error @below {{weight has elements of type 'f32'; expected 'bf16', as x}}
  %0 = ft.linear_cross_entropy %x, %w, %targets : (tensor<3x4xbf16>, tensor<8x4xf32>, tensor<3xi32>) -> tensor<f32>
  return
}

// -----

func.func @scalar(%logits: tensor<3x8xbf16>, %targets: tensor<3xi32>) {
  // expected-error @below {{result #0 must be 0D tensor of 32-bit float values, but got 'tensor<bf16>'}}
  %0 = ft.cross_entropy %logits, %targets : (tensor<3x8xbf16>, tensor<3xi32>) -> tensor<bf16>
  return
}

// -----

func.func @table(%logits: tensor<3x4xbf16>, %index: tensor<3xi32>, %table: tensor<16x5xf32>) {
  // expected-error @below {{'ft.binary_mapper' op table has elements of type 'f32'; expected 'bf16', as logits}}
  %0 = ft.binary_mapper %logits, %index, %table : (tensor<3x4xbf16>, tensor<3xi32>, tensor<16x5xf32>) -> tensor<3x5xbf16>
  return
}

// -----

func.func @copy(%x: tensor<3x4xbf16>) {
  // expected-error @below {{'ft.copy' op result has elements of type 'i32'; expected 'bf16', as x}}
  %0 = ft.copy %x : tensor<3x4xbf16> -> tensor<3x4xi32>
  return
}

// -----

func.func @copy_shape(%x: tensor<3x4xbf16>) {
  // expected-error @below {{'ft.copy' op result is 12; expected 3x4, the shape of x}}
  %0 = ft.copy %x : tensor<3x4xbf16> -> tensor<12xf32>
  return
}

// -----

// A gather rounds a master; it does not make one.
ft.unit @u {elements = 1024 : i64}
func.func @gather() {
  %s = ft.shard @u : !ft.slice<@u, bf16>
  // expected-error @below {{'ft.gather' op takes elements of type 'bf16' but gives 'f32'}}
  %f = ft.gather %s : !ft.slice<@u, bf16> -> !ft.flat<@u, f32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
func.func @reduce(%f: !ft.flat<@u, bf16>) {
  // expected-error @below {{'ft.reduce_scatter' op takes elements of type 'bf16' but gives 'f32'}}
  %s = ft.reduce_scatter %f : !ft.flat<@u, bf16> -> !ft.slice<@u, f32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @p : tensor<8xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @pack(%g: tensor<8xbf16>) {
  // expected-error @below {{'ft.pack' op @p is given type 'tensor<8xbf16>'; expected 'tensor<8xf32>'}}
  %f = ft.pack %g at [@p] : (tensor<8xbf16>) -> !ft.flat<@u, f32>
  return
}

// -----

func.func @scaler() {
  // expected-error @below {{'ft.input' op "scaler" is 'tensor<2xf32>'; expected 'tensor<3xf32>'}}
  %0 = ft.input "scaler" : tensor<2xf32>
  return
}

// -----

func.func @loss_scale(%scaler: tensor<2xf32>) {
  // expected-error @below {{'ft.loss_scale' op scaler is 2; expected 3, scale, good steps, skipped steps spared}}
  %0 = ft.loss_scale %scaler factor 1.0 : (tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @update(%scaler: tensor<3xf32>, %c: tensor<f32>) {
  // expected-error @below {{scaler is not an ft.input; expected ft.input "scaler", which is changed in place}}
  ft.update_scaler %scaler, %c {growth_factor = 2.0, backoff_factor = 0.5, growth_interval = 2000 : i64, hysteresis = 1 : i64, min_scale = 0.0, dynamic = 1 : i64} : tensor<3xf32>, tensor<f32>
  return
}

// -----

func.func @backoff(%c: tensor<f32>) {
  %scaler = ft.input "scaler" : tensor<3xf32>
  // expected-error @below {{backoff_factor is 2.000000e+00; expected more than 0, at most 1}}
  ft.update_scaler %scaler, %c {growth_factor = 2.0, backoff_factor = 2.0, growth_interval = 2000 : i64, hysteresis = 1 : i64, min_scale = 0.0, dynamic = 1 : i64} : tensor<3xf32>, tensor<f32>
  return
}

// -----

func.func @interval(%c: tensor<f32>) {
  %scaler = ft.input "scaler" : tensor<3xf32>
  // expected-error @below {{growth_interval is 0.000000e+00; expected 1 or more}}
  ft.update_scaler %scaler, %c {growth_factor = 2.0, backoff_factor = 0.5, growth_interval = 0 : i64, hysteresis = 1 : i64, min_scale = 0.0, dynamic = 1 : i64} : tensor<3xf32>, tensor<f32>
  return
}

// -----

func.func @clip(%sum: tensor<21xi64>, %scaler: tensor<4xf32>) {
  // expected-error @below {{'ft.clip_coefficient' op scaler is 4; expected 3, scale, good steps, skipped steps spared}}
  %0:2 = ft.clip_coefficient %sum scaler %scaler {max_norm = 1.0} : (tensor<21xi64>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  return
}
