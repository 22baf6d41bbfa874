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
