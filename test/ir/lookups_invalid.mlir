// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func @table(%ids: tensor<2x3xi32>, %table: tensor<8xf32>) {
  // expected-error @below {{'ft.embedding' op table is 8; expected 2 dimensions, [rows, width]}}
  %0 = ft.embedding %ids, %table : (tensor<2x3xi32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @rows(%ids: tensor<2x3xi32>, %table: tensor<8x4xf32>) {
  // expected-error @below {{result is 2x3x8; expected 2x3x4, the shape of ids and the width of table}}
  %0 = ft.embedding %ids, %table : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @ids(%ids: tensor<2x3xf32>, %table: tensor<8x4xf32>) {
  // expected-error @below {{operand #0 must be tensor of 32-bit signless integer}}
  %0 = ft.embedding %ids, %table : (tensor<2x3xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @gradient(%ids: tensor<2x3xi32>, %dy: tensor<3x2x4xf32>) {
  // expected-error @below {{'ft.embedding_grad' op dy is 3x2x4; expected 2x3x4, the shape of ids and the width of dtable}}
  %0 = ft.embedding_grad %ids, %dy : (tensor<2x3xi32>, tensor<3x2x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @accumulator(%ids: tensor<2x3xi32>, %dy: tensor<2x3x4xf32>, %acc: tensor<9x4xf32>) {
  // expected-error @below {{acc is 'tensor<9x4xf32>'; expected the type of dtable, 'tensor<8x4xf32>'}}
  %0 = ft.embedding_grad %ids, %dy into %acc : (tensor<2x3xi32>, tensor<2x3x4xf32>, tensor<9x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @iota() {
  // expected-error @below {{'ft.iota' op result is 2x3; expected 1 dimension, [count]}}
  %0 = ft.iota : tensor<2x3xi32>
  return
}

// -----

func.func @split(%x: tensor<2x8xf32>) {
  // expected-error @below {{parts have 6 elements together in dimension 1 but x has 8}}
  %0:2 = ft.split %x : tensor<2x8xf32> -> tensor<2x2xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @split_rows(%x: tensor<2x8xf32>) {
  // expected-error @below {{part #1 is 3x4; expected 2x4, the other dimensions of x}}
  %0:2 = ft.split %x : tensor<2x8xf32> -> tensor<2x4xf32>, tensor<3x4xf32>
  return
}

// -----

func.func @concat(%x: tensor<2x8xf32>) {
  // expected-error @below {{parts have 16 elements together in dimension 1 but the result has 8}}
  %0 = ft.concat %x, %x : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @no_parts() {
  // expected-error @below {{has no parts; expected at least one}}
  %0 = "ft.concat"() : () -> tensor<2x8xf32>
  return
}
