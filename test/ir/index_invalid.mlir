// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func @gather_from_other_rows(%x: tensor<2x3xf32>, %i: tensor<4x2xi32>) {
  // expected-error @below {{ids is 4x2; expected 2x2, the leading dimensions of x}}
  %0 = ft.gather_elements %x, %i : tensor<2x3xf32>, tensor<4x2xi32> -> tensor<4x2xf32>
  return
}

// -----

func.func @gather_to_another_shape(%x: tensor<2x3xf32>, %i: tensor<2x2xi32>) {
  // expected-error @below {{the result is 2x3; expected 2x2, the shape of ids}}
  %0 = ft.gather_elements %x, %i : tensor<2x3xf32>, tensor<2x2xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_by_floats(%x: tensor<2x3xf32>) {
  // expected-error @below {{operand #1 must be tensor of 32-bit signless integer}}
  %0 = ft.gather_elements %x, %x : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_with_too_few_ids(%x: tensor<2x3xf32>, %i: tensor<2x2xi32>) {
  // expected-error @below {{ids is 2x2; expected 2x3, the shape of x}}
  %0 = ft.scatter_add_elements %x, %i : tensor<2x3xf32>, tensor<2x2xi32> -> tensor<2x5xf32>
  return
}

// -----

func.func @scatter_to_other_rows(%x: tensor<2x3xf32>, %i: tensor<2x3xi32>) {
  // expected-error @below {{the result is 3x5; expected 2x5, the leading dimensions of x}}
  %0 = ft.scatter_add_elements %x, %i : tensor<2x3xf32>, tensor<2x3xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @cumsum_of_truth(%x: tensor<3xi1>) {
  // expected-error @below {{x has elements of type i1; count them with ft.convert to i32 before}}
  %0 = ft.cumsum %x : tensor<3xi1> -> tensor<3xi1>
  return
}

// -----

func.func @cumsum_of_a_scalar(%x: tensor<f32>) {
  // expected-error @below {{x is scalar; expected at least 1 dimension, [..., columns]}}
  %0 = ft.cumsum %x : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @more_than_all_places(%x: tensor<2x3xf32>) {
  // expected-error @below {{the result has 4 columns; expected no more than x, 3}}
  %0 = ft.argsort %x : tensor<2x3xf32> -> tensor<2x4xi32>
  return
}

// -----

func.func @histogram_of_two_dimensions(%i: tensor<2x3xi32>) {
  // expected-error @below {{the result is 2x3; expected 1 dimension, [counts]}}
  %0 = ft.histogram %i : tensor<2x3xi32> -> tensor<2x3xi32>
  return
}

// -----

func.func @groups_without_ends(%x: tensor<6x4xf32>, %w: tensor<3x4x5xf32>, %e: tensor<2xi32>) {
  // expected-error @below {{ends is 2; expected 3, one for each group of w}}
  %0 = ft.grouped_dot %x, %w, %e : tensor<6x4xf32>, tensor<3x4x5xf32>, tensor<2xi32> -> tensor<6x5xf32>
  return
}

// -----

func.func @groups_sum_over_others(%x: tensor<6x4xf32>, %w: tensor<3x5x4xf32>, %e: tensor<3xi32>) {
  // expected-error @below {{sums over 4 elements of x and 5 of w; x is 6x4, w is 3x5x4}}
  %0 = ft.grouped_dot %x, %w, %e : tensor<6x4xf32>, tensor<3x5x4xf32>, tensor<3xi32> -> tensor<6x4xf32>
  return
}

// -----

func.func @grouped_gradient_of_other_rows(%x: tensor<6x4xf32>, %dy: tensor<5x2xf32>, %e: tensor<3xi32>) {
  // expected-error @below {{x has 6 rows and dy 5}}
  %0 = ft.grouped_dot_grad %x, %dy, %e : (tensor<6x4xf32>, tensor<5x2xf32>, tensor<3xi32>) -> tensor<3x4x2xf32>
  return
}

// -----

func.func @grouped_gradient_into_another_type(%x: tensor<6x4xf32>, %dy: tensor<6x2xf32>, %e: tensor<3xi32>, %acc: tensor<3x4x2xbf16>) {
  // expected-error @below {{acc is 'tensor<3x4x2xbf16>'; expected the type of dw, 'tensor<3x4x2xf32>'}}
  %0 = ft.grouped_dot_grad %x, %dy, %e into %acc : (tensor<6x4xf32>, tensor<6x2xf32>, tensor<3xi32>, tensor<3x4x2xbf16>) -> tensor<3x4x2xf32>
  return
}
