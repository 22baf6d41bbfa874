// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func private @soft_cap(%x: tensor<2xf32>) -> tensor<2xf32> attributes {ft.composite} {
  return %x : tensor<2xf32>
}
func.func @no_such_function(%x: tensor<2xf32>) {
  // expected-error @below {{'ft.call' op there is no function @softcap; did you mean @soft_cap?}}
  %0 = ft.call @softcap(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @soft_cap(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @no_composite(%x: tensor<2xf32>) {
  // expected-error @below {{'ft.call' op calls @soft_cap, which is no composite; mark it: func.func private @soft_cap(...) attributes {ft.composite}}}
  %0 = ft.call @soft_cap(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @soft_cap(%x: tensor<2xf32>) -> tensor<2xf32> attributes {ft.composite} {
  return %x : tensor<2xf32>
}
func.func @operands(%x: tensor<2xf32>) {
  // expected-error @below {{'ft.call' op has 2 operands; @soft_cap has 1}}
  %0 = ft.call @soft_cap(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @soft_cap(%x: tensor<2xf32>) -> tensor<2xf32> attributes {ft.composite} {
  return %x : tensor<2xf32>
}
func.func @shape(%x: tensor<3xf32>) {
  // expected-error @below {{'ft.call' op operand 0 is 'tensor<3xf32>'; @soft_cap has 'tensor<2xf32>'}}
  %0 = ft.call @soft_cap(%x) : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @soft_cap(%x: tensor<2xf32>) -> tensor<2xf32> attributes {ft.composite} {
  return %x : tensor<2xf32>
}
func.func @no_float(%x: tensor<2xf32>) {
  // expected-error @below {{'ft.call' op result 0 is 'tensor<2xi32>'; @soft_cap has 'tensor<2xf32>'}}
  %0 = ft.call @soft_cap(%x) : (tensor<2xf32>) -> tensor<2xi32>
  return
}

// -----

func.func private @soft_cap(%x: tensor<2xf32>) -> tensor<2xf32> attributes {ft.composite} {
  return %x : tensor<2xf32>
}
func.func @no_result(%x: tensor<2xf32>) {
  // expected-error @below {{'ft.call' op parameter_grads names result 1 of 1}}
  %0 = ft.call @soft_cap(%x) parameter_grads [1] : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @softmax_of_a_scalar(%x: tensor<f32>) {
  // expected-error @below {{'ft.softmax' op x is scalar; expected at least 1 dimension, of which the last is summed over}}
  %0 = ft.softmax %x : tensor<f32>
  return
}

// -----

func.func @heads(%x: tensor<2x6xf32>, %w: tensor<2xf32>) {
  // expected-error @below {{'ft.qk_norm' op x has 6 columns; expected heads, 2, times the elements of weight, 2}}
  %0 = ft.qk_norm %x, %w heads 2 eps 1.0e-6 : tensor<2x6xf32>, tensor<2xf32>
  return
}

// -----

func.func @eps(%x: tensor<2x6xf32>, %w: tensor<2xf32>) {
  // expected-error @below {{'ft.qk_norm' op eps is -1.000000e+00; expected 0 or more}}
  %0 = ft.qk_norm %x, %w heads 3 eps -1.0 : tensor<2x6xf32>, tensor<2xf32>
  return
}
