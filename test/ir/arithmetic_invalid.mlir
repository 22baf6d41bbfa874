// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func @columns(%a: tensor<2x768xf32>, %b: tensor<3072x64xf32>) {
  // expected-error @below {{'ft.matmul' op a has 768 columns but b has 3072 rows; a is 2x768, b is 3072x64}}
  %0 = ft.matmul %a, %b : (tensor<2x768xf32>, tensor<3072x64xf32>) -> tensor<2x64xf32>
  return
}

// -----

func.func @forgotten_transpose(%a: tensor<2x4xf32>, %b: tensor<6x4xf32>) {
  // expected-error @below {{a has 4 columns but b has 6 rows; a is 2x4, b is 6x4 (would fit with transpose_b)}}
  %0 = ft.matmul %a, %b : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @needless_transpose(%a: tensor<2x4xf32>, %b: tensor<4x6xf32>) {
  // expected-error @below {{a has 4 columns but b has 6 columns, which transpose_b makes rows; a is 2x4, b is 4x6 (would fit without transpose_b)}}
  %0 = ft.matmul %a, %b transpose_b : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @result(%a: tensor<2x3x4xf32>, %b: tensor<4x6xf32>) {
  // expected-error @below {{result is 2x6; expected 2x3x6, the rows of a and the columns of b}}
  %0 = ft.matmul %a, %b : (tensor<2x3x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @rows(%a: tensor<2x3x4xf32>, %b: tensor<2x5x6xf32>) {
  // expected-error @below {{with transpose_a, a and b are summed over the same rows; a is 2x3x4 but b is 2x5x6}}
  %0 = ft.matmul %a, %b transpose_a : (tensor<2x3x4xf32>, tensor<2x5x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @sum_over_rows(%a: tensor<2x4xf32>, %b: tensor<2x6xf32>) {
  // expected-error @below {{result is 6x4; expected 4x6, the columns of a and of b}}
  %0 = ft.matmul %a, %b transpose_a : (tensor<2x4xf32>, tensor<2x6xf32>) -> tensor<6x4xf32>
  return
}

// -----

func.func @both(%a: tensor<2x4xf32>, %b: tensor<6x2xf32>) {
  // expected-error @below {{transpose_a and transpose_b together are not supported}}
  %0 = ft.matmul %a, %b transpose_a transpose_b : (tensor<2x4xf32>, tensor<6x2xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @rank(%a: tensor<2x4xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{b is 4; expected 2 dimensions, [K, N]}}
  %0 = ft.matmul %a, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scalar(%a: tensor<f32>, %b: tensor<4x4xf32>) {
  // expected-error @below {{a is scalar; expected at least 1 dimension, [..., columns]}}
  %0 = ft.matmul %a, %b : (tensor<f32>, tensor<4x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @bias(%a: tensor<2x4xf32>, %b: tensor<4x6xf32>, %bias: tensor<4xf32>) {
  // expected-error @below {{bias is 4; expected 6, one element per column of the result}}
  %0 = ft.matmul %a, %b bias %bias : (tensor<2x4xf32>, tensor<4x6xf32>, tensor<4xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @acc(%a: tensor<2x4xf32>, %b: tensor<4x6xf32>, %acc: tensor<6xf32>) {
  // expected-error @below {{acc is 'tensor<6xf32>'; expected the type of the result, 'tensor<2x6xf32>'}}
  %0 = ft.matmul %a, %b into %acc : (tensor<2x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @element_types(%a: tensor<2x4xf32>, %b: tensor<4x6xbf16>) {
  // expected-error @below {{b has elements of type 'bf16'; expected 'f32', as a}}
  %0 = ft.matmul %a, %b : (tensor<2x4xf32>, tensor<4x6xbf16>) -> tensor<2x6xf32>
  return
}

// -----

func.func @dynamic(%x: tensor<?x4xf32>) {
  // expected-error @below {{'ft.scale' op 'tensor<?x4xf32>' is no shape that kernels take: at most 8 dimensions, static and positive}}
  %0 = ft.scale %x, 2.0 : tensor<?x4xf32>
  return
}

// -----

func.func @empty(%x: tensor<0x4xf32>) {
  // expected-error @below {{'tensor<0x4xf32>' is no shape that kernels take: at most 8 dimensions, static and positive}}
  %0 = ft.scale %x, 2.0 : tensor<0x4xf32>
  return
}

// -----

func.func @too_many_dimensions(%x: tensor<1x2x1x2x1x2x1x2x1xf32>) {
  // expected-error @below {{is no shape that kernels take: at most 8 dimensions, static and positive}}
  %0 = ft.scale %x, 2.0 : tensor<1x2x1x2x1x2x1x2x1xf32>
  return
}

// -----

func.func @norm_weight(%x: tensor<2x3x64xf32>, %w: tensor<32xf32>, %b: tensor<64xf32>) {
  // expected-error @below {{'ft.layer_norm' op weight is 32; expected 64, the last dimension of x, which is 2x3x64}}
  %0 = ft.layer_norm %x, %w, %b eps 1.0e-5 : tensor<2x3x64xf32>, tensor<32xf32>, tensor<64xf32>
  return
}

// -----

func.func @norm_bias(%x: tensor<2x3x64xf32>, %w: tensor<64xf32>, %b: tensor<2x64xf32>) {
  // expected-error @below {{'ft.layer_norm' op bias is 2x64; expected 64}}
  %0 = ft.layer_norm %x, %w, %b eps 1.0e-5 : tensor<2x3x64xf32>, tensor<64xf32>, tensor<2x64xf32>
  return
}

// -----

func.func @norm_eps(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @below {{'ft.rms_norm' op eps is -1.000000e+00; expected 0 or more}}
  %0 = ft.rms_norm %x, %w eps -1.0 : tensor<2x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @matmul_gelu_columns(%a: tensor<2x3x4xf32>, %w: tensor<8x4xf32>) {
  // expected-error @below {{'ft.matmul_gelu' op a has 4 columns but b has 8 rows; a is 2x3x4, b is 8x4 (would fit with transpose_b)}}
  %0 = ft.matmul_gelu %a, %w then @gelu : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @matmul_gelu_bias(%a: tensor<3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'ft.matmul_gelu' op bias is 4; expected 8, one element per column of the result}}
  %0 = ft.matmul_gelu %a, %w bias %b then @gelu : (tensor<3x4xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @matmul_gelu_kept(%a: tensor<3x4xbf16>, %w: tensor<4x8xbf16>) {
  // expected-error @below {{'ft.matmul_gelu' op x is 'tensor<3x8xf32>'; expected the type of the result, 'tensor<3x8xbf16>'}}
  %0:2 = ft.matmul_gelu %a, %w then @gelu : (tensor<3x4xbf16>, tensor<4x8xbf16>) -> (tensor<3x8xbf16>, tensor<3x8xf32>)
  return
}

// -----

func.func @matmul_gelu_type(%a: tensor<3x4xbf16>, %w: tensor<4x8xbf16>) {
  // expected-error @below {{'ft.matmul_gelu' op result has elements of type 'f32'; expected 'bf16', as a}}
  %0 = ft.matmul_gelu %a, %w then @gelu : (tensor<3x4xbf16>, tensor<4x8xbf16>) -> tensor<3x8xf32>
  return
}

// -----

func.func @matmul_gelu_grad_shape(%a: tensor<3x4xf32>, %w: tensor<4x8xf32>, %x: tensor<3x9xf32>) {
  // expected-error @below {{'ft.matmul_gelu_grad' op dx is 3x9; expected 3x8, the rows of a and the columns of b}}
  %0 = ft.matmul_gelu_grad %a, %w at %x then @gelu : tensor<3x4xf32>, tensor<4x8xf32>, tensor<3x9xf32>
  return
}

// -----

func.func @bias_grad_of_a_product(%x: tensor<3x3xf32>, %dy: tensor<3x8xf32>) {
  // expected-error @below {{'ft.matmul_bias_grad' op is of a weight's gradient: it has transpose_a}}
  %0:2 = ft.matmul_bias_grad %x, %dy beside @sum partial_bytes [0, 0] : (tensor<3x3xf32>, tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @bias_grad_rows(%x: tensor<2x4xf32>, %dy: tensor<3x8xf32>) {
  // expected-error @below {{'ft.matmul_bias_grad' op with transpose_a, a and b are summed over the same rows; a is 2x4 but b is 3x8}}
  %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum partial_bytes [0, 0] : (tensor<2x4xf32>, tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @bias_grad_of_which(%x: tensor<3x4xf32>, %dy: tensor<3x8xf32>) {
  // expected-error @below {{'ft.matmul_bias_grad' op sums is 8; expected 4, the columns of what is summed}}
  %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum of_a partial_bytes [0, 0] : (tensor<3x4xf32>, tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @bias_grad_type(%x: tensor<3x4xbf16>, %dy: tensor<3x8xbf16>) {
  // expected-error @below {{'ft.matmul_bias_grad' op sums has elements of type 'bf16'; expected 'f32', as the result}}
  %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum partial_bytes [0, 0] : (tensor<3x4xbf16>, tensor<3x8xbf16>) -> (tensor<4x8xf32>, tensor<8xbf16>)
  return
}

// -----

func.func @bias_grad_scratch(%x: tensor<3x4xf32>, %dy: tensor<3x8xf32>) {
  // expected-error @below {{'ft.matmul_bias_grad' op partial_bytes are not one number for each of 2 kinds of devices}}
  %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum partial_bytes [0] : (tensor<3x4xf32>, tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @bias_grad_body(%x: tensor<3x4xf32>, %dy: tensor<3x8xf32>) {
  // expected-error @below {{'ft.matmul_bias_grad' op has other types than @sum, which is '(tensor<3x9xf32>) -> tensor<9xf32>'}}
  %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum partial_bytes [0, 0] : (tensor<3x4xf32>, tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}
func.func private @sum(%x: tensor<3x9xf32>) -> tensor<9xf32> attributes {ft.cluster}

// -----

func.func @bias_grad_of_another(%x: tensor<3x4xf32>, %dy: tensor<3x8xf32>) {
  // expected-error @below {{'ft.matmul_bias_grad' op runs @largest, which is not the sum over rows}}
  %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @largest partial_bytes [0, 0] : (tensor<3x4xf32>, tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}
func.func private @largest(%x: tensor<3x8xf32>) -> tensor<8xf32> attributes {ft.cluster} {
  %most = ft.reduce "max" %x over [0] : tensor<3x8xf32> -> tensor<8xf32>
  return %most : tensor<8xf32>
}

// -----

func.func @add(%a: tensor<2x3x4xf32>, %b: tensor<2x4xf32>) {
  // expected-error @below {{'ft.add' op b is 2x4; expected the shape of a, 2x3x4, or its last dimensions (ft.broadcast repeats along others)}}
  %0 = ft.add %a, %b : tensor<2x3x4xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @mul(%a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error @below {{'ft.mul' op b has elements of type 'i32' beside 'f32'; make them one with ft.convert}}
  %0 = ft.mul %a, %b : tensor<4xf32>, tensor<4xi32>
  return
}

// -----

func.func @broadcast(%x: tensor<3xf32>) {
  // expected-error @below {{x is 3; expected the last dimensions of the result, 2x4, or 1 in the place of some (ft.reshape adds dimensions of 1)}}
  %0 = ft.broadcast %x : tensor<3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @gelu(%x: tensor<3xf32>) {
  // expected-error @below {{'ft.gelu' op approximate is "fast"; expected "tanh" or "none"}}
  %0 = ft.gelu %x approximate "fast" : tensor<3xf32>
  return
}

// -----

func.func @no_body(%a: tensor<3x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{'ft.matmul_gelu' op runs @plain, which is neither a composite nor a cluster}}
  %0 = ft.matmul_gelu %a, %w then @plain : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  return
}
func.func private @plain(%x: tensor<3x8xf32>) -> tensor<3x8xf32>

// -----

func.func @other_body(%a: tensor<3x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{'ft.matmul_gelu' op has other types than @gelu, which is '(tensor<3x9xf32>) -> tensor<3x9xf32>'}}
  %0 = ft.matmul_gelu %a, %w then @gelu : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  return
}
func.func private @gelu(%x: tensor<3x9xf32>) -> tensor<3x9xf32> attributes {ft.composite} {
  return %x : tensor<3x9xf32>
}
