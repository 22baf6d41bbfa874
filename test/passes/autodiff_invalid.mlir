// RUN: ft-opt %s --split-input-file --verify-diagnostics --ft-outline-composites --ft-autodiff

// expected-error @below {{there is no function @forward to differentiate}}
module {}

// -----

// expected-error @below {{is here already: a module is differentiated once}}
func.func @train_step(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %loss = ft.fill 0.0 : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{must return the loss, one tensor<f32>}}
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<2xf32> {
  %loss = ft.fill 0.0 : tensor<2xf32>
  return %loss : tensor<2xf32>
}

// -----

// expected-error @below {{must have a body of one block}}
func.func private @forward(tensor<4xi32>, tensor<4xi32>) -> tensor<f32>

// -----

ft.parameter @x : tensor<4x3xf32> = #ft.init<normal, 1.0>
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %x = ft.get @x : tensor<4x3xf32>
  // expected-error @below {{'ft.embedding_grad' has no derivative but lies between a trained parameter and the loss}}
  %sum = ft.embedding_grad %tokens, %x : (tensor<4xi32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %loss = ft.cross_entropy %sum, %targets : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Without a trained parameter before it, the same op is welcome.
ft.parameter @x : tensor<4x3xf32> = #ft.init<normal, 1.0> {frozen}
ft.parameter @b : tensor<3xf32> = #ft.init<normal, 1.0>
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %x = ft.get @x : tensor<4x3xf32>
  %b = ft.get @b : tensor<3xf32>
  %sum = ft.embedding_grad %tokens, %x : (tensor<4xi32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %y = ft.add %sum, %b : tensor<4x3xf32>, tensor<3xf32>
  %loss = ft.cross_entropy %y, %targets : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @x : tensor<4x3xf32> = #ft.init<normal, 1.0>
ft.parameter @w : tensor<3x3xf32> = #ft.init<normal, 1.0>
func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %x = ft.get @x : tensor<4x3xf32>
  %w = ft.get @w : tensor<3x3xf32>
  // expected-error @below {{with an accumulator (`into`) has no derivative: write the sum as ft.add}}
  %y = ft.matmul %x, %w into %x : (tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %loss = ft.cross_entropy %y, %targets : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @x : tensor<1x4x4xf32> = #ft.init<normal, 1.0>
func.func @forward(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  %x = ft.get @x : tensor<1x4x4xf32>
  // expected-error @below {{has no derivative of `lse`}}
  %y, %lse = ft.attention %x, %x, %x heads 2 kv_heads 2 : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> (tensor<1x4x4xf32>, tensor<1x2x4xf32>)
  %loss = ft.cross_entropy %lse, %targets : (tensor<1x2x4xf32>, tensor<1x2xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
