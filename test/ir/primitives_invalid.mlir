// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func @wrong_number(%x: tensor<3xf32>) {
  // expected-error @below {{'ft.add' op takes 2 operands, not 1}}
  %0 = "ft.add"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @integers_to_a_float_op(%x: tensor<3xi32>) {
  // expected-error @below {{'ft.exp' op a has elements of type 'i32'; expected f32, bf16 or f16 (ft.convert makes floats of integers)}}
  %0 = ft.exp %x : tensor<3xi32>
  return
}

// -----

func.func @floats_to_an_integer_op(%x: tensor<3xf32>) {
  // expected-error @below {{'ft.floor_div' op a has elements of type 'f32'; expected i32 or i64}}
  %0 = ft.floor_div %x, 2.0 : tensor<3xf32>
  return
}

// -----

func.func @no_condition(%x: tensor<3xf32>) {
  // expected-error @below {{'ft.select' op a has elements of type 'f32'; expected i1, as comparisons give}}
  %0 = ft.select %x, %x, %x : tensor<3xf32>
  return
}

// -----

func.func @integers_of_two_types(%x: tensor<3xi32>, %y: tensor<3xi64>) {
  // expected-error @below {{b has elements of type 'i64' beside 'i32'; make them one with ft.convert}}
  %0 = ft.add %x, %y : tensor<3xi32>, tensor<3xi64>
  return
}

// -----

func.func @leading_dimensions(%x: tensor<3x4xf32>, %y: tensor<3x1xf32>) {
  // expected-error @below {{b is 3x1; expected the shape of a, 3x4, or its last dimensions (ft.broadcast repeats along others)}}
  %0 = ft.sub %x, %y : tensor<3x4xf32>, tensor<3x1xf32>
  return
}

// -----

func.func @result_of_another_shape(%x: tensor<3xf32>) {
  // expected-error @below {{the result is 4; expected 3, the shape of a}}
  %0 = ft.neg %x : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @result_of_another_kind(%x: tensor<3xf32>) {
  // expected-error @below {{the result has elements of type 'i32'; expected 'f32', as the operands}}
  %0 = ft.neg %x : tensor<3xf32> -> tensor<3xi32>
  return
}

// -----

func.func @comparison_gives_truth(%x: tensor<3xf32>) {
  // expected-error @below {{the result has elements of type 'f32'; expected i1}}
  %0 = ft.lt %x, %x : tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @result_is_no_tensor(%x: tensor<3xf32>) {
  // expected-error @below {{takes and gives tensors, not 'f32'}}
  %0 = ft.neg %x : tensor<3xf32> -> f32
  return
}

// -----

func.func @result_of_64_bits(%x: tensor<3xf32>) {
  // expected-error @below {{the result has elements of type 'f64'; expected 'f32', as the operands}}
  %0 = ft.neg %x : tensor<3xf32> -> tensor<3xf64>
  return
}

// -----

func.func @parameter_is_too_large(%x: tensor<3xi32>) {
  // expected-error @below {{min is 3.000000e+09; expected a number that 'i32' holds}}
  %0 = ft.clamp %x, 3000000000.0, 4000000000.0 : tensor<3xi32>
  return
}

// -----

func.func @slice_wraps_around(%x: tensor<3xf32>) {
  // expected-error @below {{2 elements from 9223372036854775807 on are outside of dimension 0 of x, which has 3}}
  %0 = ft.slice %x at [9223372036854775807] : tensor<3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @parameter_is_missing(%x: tensor<3xf32>) {
  // expected-error @below {{needs 'factor', a number}}
  %0 = "ft.scale"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @parameter_is_infinite(%x: tensor<3xf32>) {
  // expected-error @below {{factor is 1.000000e+39; expected a number that 'f32' holds}}
  %0 = ft.scale %x, 1.0e39 : tensor<3xf32>
  return
}

// -----

func.func @fill_is_infinite() {
  // expected-error @below {{value is 1.000000e+39; expected a number that 'f32' holds}}
  %0 = ft.fill 1.0e39 : tensor<3xf32>
  return
}

// -----

func.func @parameter_is_no_integer(%x: tensor<3xi32>) {
  // expected-error @below {{factor is 5.000000e-01; expected an integer, as the operand's elements}}
  %0 = ft.scale %x, 0.5 : tensor<3xi32>
  return
}

// -----

func.func @divisor_is_zero(%x: tensor<3xi32>) {
  // expected-error @below {{divisor is 0.000000e+00; expected 1 or more}}
  %0 = ft.remainder %x, 0.0 : tensor<3xi32>
  return
}

// -----

func.func @clamp_is_empty(%x: tensor<3xf32>) {
  // expected-error @below {{min is 1.000000e+00, above max, -1.000000e+00}}
  %0 = ft.clamp %x, 1.0, -1.0 : tensor<3xf32>
  return
}

// -----

func.func @convert_between_floats(%x: tensor<3xf32>) {
  // expected-error @below {{converts between floats; --mixed-precision decides their types}}
  %0 = ft.convert %x : tensor<3xf32> -> tensor<3xbf16>
  return
}

// -----

func.func @convert_changes_the_shape(%x: tensor<3xf32>) {
  // expected-error @below {{the result is 4; expected 3, the shape of x}}
  %0 = ft.convert %x : tensor<3xf32> -> tensor<4xi32>
  return
}

// -----

func.func @reshape_loses_elements(%x: tensor<2x3xf32>) {
  // expected-error @below {{the result is 2x2, which has other than the 6 elements of x, 2x3}}
  %0 = ft.reshape %x : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @reshape_changes_the_type(%x: tensor<2x3xf32>) {
  // expected-error @below {{the result has elements of type 'i32'; expected 'f32', as x}}
  %0 = ft.reshape %x : tensor<2x3xf32> -> tensor<6xi32>
  return
}

// -----

func.func @permutation_repeats(%x: tensor<2x3xf32>) {
  // expected-error @below {{permutation must name each of the 2 dimensions once, from 0 on; it has 1 twice}}
  %0 = ft.transpose %x [1, 1] : tensor<2x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @permutation_is_short(%x: tensor<2x3xf32>) {
  // expected-error @below {{permutation has 1 numbers; expected one for each dimension of x, which is 2x3}}
  %0 = ft.transpose %x [0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @transpose_to_another_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{the result is 2x3; expected 3x2, the dimensions of x in the order of the permutation}}
  %0 = ft.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_outside(%x: tensor<2x3xf32>) {
  // expected-error @below {{2 elements from 2 on are outside of dimension 1 of x, which has 3}}
  %0 = ft.slice %x at [0, 2] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @slice_before_the_begin(%x: tensor<2x3xf32>) {
  // expected-error @below {{2 elements from -1 on are outside of dimension 0 of x, which has 2}}
  %0 = ft.slice %x at [-1, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @slice_drops_a_dimension(%x: tensor<2x3xf32>) {
  // expected-error @below {{the result is 3; expected as many dimensions as x, which is 2x3}}
  %0 = ft.slice %x at [0, 0] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @pad_outside(%x: tensor<2x3xf32>) {
  // expected-error @below {{2 elements from 1 on are outside of dimension 0 of the result, which has 2}}
  %0 = ft.pad %x at [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @reduce_of_no_kind(%x: tensor<2x3xf32>) {
  // expected-error @below {{kind is "mean"; expected "sum", "max" or "min"}}
  %0 = ft.reduce "mean" %x over [0] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @reduce_descends(%x: tensor<2x3xf32>) {
  // expected-error @below {{dims must be dimensions of x, which is 2x3, ascending, from 0 on; it has 0}}
  %0 = ft.reduce "sum" %x over [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @reduce_of_truth(%x: tensor<2x3xi1>) {
  // expected-error @below {{x has elements of type i1; count them with ft.convert to i32 before}}
  %0 = ft.reduce "sum" %x over [0] : tensor<2x3xi1> -> tensor<3xi1>
  return
}

// -----

func.func @reduce_to_another_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{the result is 2; expected 3, the dimensions of x that are not reduced}}
  %0 = ft.reduce "sum" %x over [0] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @dot_of_vectors(%x: tensor<3xf32>) {
  // expected-error @below {{a is 3; expected at least 2 dimensions, [..., M, K]}}
  %0 = ft.dot %x, %x : tensor<3xf32>, tensor<3xf32> -> tensor<f32>
  return
}

// -----

func.func @dot_of_other_batches(%x: tensor<2x3x4xf32>, %y: tensor<3x4x5xf32>) {
  // expected-error @below {{a is 2x3x4 and b is 3x4x5; expected the same leading dimensions (ft.matmul takes one b for all rows of a)}}
  %0 = ft.dot %x, %y : tensor<2x3x4xf32>, tensor<3x4x5xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @dot_sums_over_others(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{sums over 4 elements of a and 3 of b; a is 2x3x4, b is 2x3x4}}
  %0 = ft.dot %x, %x : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @concat_of_no_axis(%x: tensor<2x3xf32>) {
  // expected-error @below {{axis is 2; the result is 2x6}}
  %0 = ft.concat %x, %x axis 2 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x6xf32>
  return
}
