// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func @types(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has other types than @twice, which is '(tensor<4xf32>) -> tensor<4xf32>'}}
  %y = ft.cluster @twice(%x) partial_bytes [0, 0] in_place [-1] : (tensor<8xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ft.cluster} {
  return %x : tensor<4xf32>
}

// -----

func.func @mark(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{runs @twice, which has no attribute ft.cluster}}
  %y = ft.cluster @twice(%x) partial_bytes [0, 0] in_place [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @name(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{there is no function @twice}}
  %y = ft.cluster @twice(%x) partial_bytes [0, 0] in_place [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @place(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{in_place names operand 1, which is none of the result's type}}
  %y = ft.cluster @twice(%x) partial_bytes [0, 0] in_place [1] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @places(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has 2 numbers in_place for 1 results}}
  %y = ft.cluster @twice(%x) partial_bytes [0, 0] in_place [0, -1] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
