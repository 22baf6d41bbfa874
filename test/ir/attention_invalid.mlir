// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func @rope_heads(%x: tensor<2x3x8xf32>) {
  // expected-error @below {{'ft.rope' op x has 8 columns, which 3 heads do not divide}}
  %0 = ft.rope %x heads 3 base 10000.0 : tensor<2x3x8xf32>
  return
}

// -----

func.func @rope_head_size(%x: tensor<2x3x6xf32>) {
  // expected-error @below {{the head size is 3; expected an even one, whose halves are rotated}}
  %0 = ft.rope %x heads 2 base 10000.0 : tensor<2x3x6xf32>
  return
}

// -----

func.func @rope_base(%x: tensor<2x3x8xf32>) {
  // expected-error @below {{base is 0.000000e+00; expected a positive number}}
  %0 = ft.rope %x heads 2 base 0.0 : tensor<2x3x8xf32>
  return
}

// -----

func.func @no_heads(%x: tensor<2x3x8xf32>) {
  // expected-error @below {{heads is 0; expected at least 1}}
  %0 = ft.rope %x heads 0 base 10000.0 : tensor<2x3x8xf32>
  return
}

// -----

func.func @rotate_angles(%x: tensor<2x3x8xf32>, %c: tensor<3x4xf32>) {
  // expected-error @below {{cosine is 3x4; expected 3x2, an angle for each pair of a head, at each position}}
  %0 = ft.rotate %x by %c, %c heads 2 : tensor<2x3x8xf32>, tensor<3x4xf32>
  return
}

// -----

func.func @rotary_table(%x: tensor<2x3x8xf32>) {
  // expected-error @below {{base is -1.000000e+00; expected a positive number}}
  %0, %1 = ft.rotary_table base -1.0 : tensor<3x2xf32>
  return
}

// -----

func.func @rank(%q: tensor<6x8xf32>, %lse: tensor<2x4x3xf32>) {
  // expected-error @below {{'ft.attention' op q is 6x8; expected 3 dimensions, [batch, positions, heads * head size]}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @groups(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{4 heads cannot share 3 kv heads evenly}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 3 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @kv_width(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{k is 2x3x8; expected 2x3x4, 2 kv heads of size 2}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @lse(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{lse is 2x3x4; expected 2x4x3, [batch, heads, positions]}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @lse_type(%q: tensor<2x3x8xbf16>) {
  // expected-error @below {{lse has elements of type 'bf16'; expected f32}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x4x3xbf16>)
  return
}

// -----

func.func @gradient(%q: tensor<2x3x8xf32>, %k: tensor<2x3x4xf32>, %lse: tensor<2x4x3xf32>) {
  // expected-error @below {{'ft.attention_grad' op dk is 'tensor<2x3x8xf32>'; expected the type of k, 'tensor<2x3x4xf32>'}}
  %0:3 = ft.attention_grad %q, %q, %k, %k, %q, %lse heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @qkv_width(%qkv: tensor<2x3x20xf32>) {
  // expected-error @below {{'ft.qkv_attention' op qkv has 20 columns, which 8 heads do not divide}}
  %0, %1 = ft.qkv_attention %qkv heads 4 kv_heads 2 : (tensor<2x3x20xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @qkv_groups(%qkv: tensor<2x3x20xf32>) {
  // expected-error @below {{4 heads cannot share 3 kv heads evenly}}
  %0, %1 = ft.qkv_attention %qkv heads 4 kv_heads 3 : (tensor<2x3x20xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @qkv_out(%qkv: tensor<2x3x16xf32>) {
  // expected-error @below {{out is 2x3x16; expected 2x3x8, 4 heads of size 2}}
  %0, %1 = ft.qkv_attention %qkv heads 4 kv_heads 2 : (tensor<2x3x16xf32>) -> (tensor<2x3x16xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @qkv_gradient(%out: tensor<2x3x8xf32>, %qkv: tensor<2x3x16xf32>, %lse: tensor<2x4x3xf32>) {
  // expected-error @below {{'ft.qkv_attention_grad' op dqkv is 'tensor<2x3x8xf32>'; expected the type of qkv, 'tensor<2x3x16xf32>'}}
  %0 = ft.qkv_attention_grad %out, %qkv, %out, %lse heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x16xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @window(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{'ft.attention' op window is 0; expected at least 1, the query's own position, or none for all positions}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 causal window 0 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @scale(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{'ft.attention' op scale is 0.000000e+00; expected a positive finite number, or none for 1 / sqrt(head size)}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 scale 0.0 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @negative_scale(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{scale is -1.250000e-01; expected a positive finite number}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 scale -0.125 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @infinite_scale(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{scale is INF; expected a positive finite number}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 scale 0x7FF0000000000000 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @scale_beyond_f32(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{scale is 1.000000e+39; expected a positive finite number}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 scale 1.0e39 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @softcap(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{'ft.attention' op softcap is -5.000000e+01; expected a positive finite number, or none for scores without a bound}}
  %0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 softcap -50.0 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @qkv_window(%qkv: tensor<2x3x16xf32>) {
  // expected-error @below {{'ft.qkv_attention' op window is -1; expected at least 1}}
  %0, %1 = ft.qkv_attention %qkv heads 4 kv_heads 2 window -1 : (tensor<2x3x16xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @qkv_gradient_softcap(%out: tensor<2x3x8xf32>, %qkv: tensor<2x3x16xf32>, %lse: tensor<2x4x3xf32>) {
  // expected-error @below {{'ft.qkv_attention_grad' op softcap is 0.000000e+00; expected a positive finite number}}
  %0 = ft.qkv_attention_grad %out, %qkv, %out, %lse heads 4 kv_heads 2 softcap 0.0 : (tensor<2x3x8xf32>, tensor<2x3x16xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>) -> tensor<2x3x16xf32>
  return
}

// -----

func.func @lengths(%q: tensor<2x3x8xf32>, %n: tensor<3xi32>) {
  // expected-error @below {{'ft.attention' op lengths is 3; expected 2, one for each example}}
  %0, %1 = ft.attention %q, %q, %q lengths %n heads 4 kv_heads 4 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<3xi32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @segments(%q: tensor<2x3x8xf32>, %s: tensor<2x4xi32>) {
  // expected-error @below {{'ft.attention' op segments is 2x4; expected 2x3, an id for each position}}
  %0, %1 = ft.attention %q, %q, %q segments %s heads 4 kv_heads 4 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x4xi32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @wide_ids(%q: tensor<2x3x8xf32>, %s: tensor<2x3xi64>) {
  // expected-error @below {{operand #3 must be tensor of 32-bit signless integer}}
  %0, %1 = ft.attention %q, %q, %q segments %s heads 4 kv_heads 4 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @rate(%qkv: tensor<2x3x16xf32>, %rng: tensor<3xi64>) {
  // expected-error @below {{'ft.qkv_attention' op rate is 1.000000e+00; expected 0 or more, below 1}}
  %0, %1 = ft.qkv_attention %qkv dropout 1.0 rng %rng stream 1 heads 4 kv_heads 2 : (tensor<2x3x16xf32>, tensor<3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @rng(%qkv: tensor<2x3x16xf32>, %rng: tensor<2xi64>) {
  // expected-error @below {{'ft.qkv_attention' op rng is 'tensor<2xi64>'; expected 'tensor<3xi64>': seed, step, rank}}
  %0, %1 = ft.qkv_attention %qkv dropout 0.5 rng %rng stream 1 heads 4 kv_heads 2 : (tensor<2x3x16xf32>, tensor<2xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @half_dropout(%qkv: tensor<2x3x16xf32>) {
  // expected-error @below {{'ft.qkv_attention' op has only some of dropout, rng and stream; expected all of them or none}}
  %0, %1 = "ft.qkv_attention"(%qkv) <{heads = 4 : i64, kv_heads = 2 : i64, rate = 0.5 : f64, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (tensor<2x3x16xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @gradient(%out: tensor<2x3x8xf32>, %qkv: tensor<2x3x16xf32>, %lse: tensor<2x4x3xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{'ft.qkv_attention_grad' op lengths is 4; expected 2, one for each example}}
  %0 = ft.qkv_attention_grad %out, %qkv, %out, %lse lengths %n heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x16xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<4xi32>) -> tensor<2x3x16xf32>
  return
}
