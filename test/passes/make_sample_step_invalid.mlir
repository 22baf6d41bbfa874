// RUN: ft-opt %s --split-input-file --verify-diagnostics --ft-make-sample-step

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02>

// The targets are the tokens themselves: a masked language model.
func.func @forward(%tokens: tensor<2x3xi32> {ft.input = "tokens"}, %labels: tensor<2x3xi32> {ft.input = "labels"}) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %l = ft.matmul %x, %w transpose_b : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  // expected-error @below {{a text cannot be continued (--sample): the targets of its loss are not the token behind each token}}
  %loss = ft.cross_entropy %l, %labels : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02>

// Rows of another order.
func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %l = ft.matmul %x, %w transpose_b : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %turned = ft.transpose %l [1, 0, 2] : tensor<2x3x16xf32> -> tensor<3x2x16xf32>
  %ids = ft.transpose %targets [1, 0] : tensor<2x3xi32> -> tensor<3x2xi32>
  // expected-error @below {{the targets of its loss are not the token behind each token}}
  %loss = ft.cross_entropy %turned, %ids : (tensor<3x2x16xf32>, tensor<3x2xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02>

func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  // expected-error @below {{this attention sees what comes after a position; with `causal` it does not}}
  %y, %lse = ft.attention %x, %x, %x heads 2 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x2x3xf32>)
  %l = ft.matmul %y, %w transpose_b : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %loss = ft.cross_entropy %l, %targets : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02>

// expected-error @below {{nothing says what input 'kinds' is then; known are tokens, 'positions', 'segments'}}
func.func @forward(%tokens: tensor<2x3xi32> {ft.input = "tokens"}, %targets: tensor<2x3xi32> {ft.input = "targets"},
                   %kinds: tensor<2x3xi32> {ft.input = "kinds"}) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %k = ft.embedding %kinds, %w : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %y = ft.add %x, %k : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  %l = ft.matmul %y, %w transpose_b : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %loss = ft.cross_entropy %l, %targets : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{the model has no input 'tokens' or 'input_ids' of integers [batch, sequence]}}
func.func @forward(%x: tensor<2x16xf32> {ft.input = "x"}, %labels: tensor<2xi32> {ft.input = "labels"}) -> tensor<f32> {
  %loss = ft.cross_entropy %x, %labels : (tensor<2x16xf32>, tensor<2xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{the loss is no cross entropy}}
func.func @forward(%tokens: tensor<2x3xi32> {ft.input = "tokens"}) -> tensor<f32> {
  %x = ft.convert %tokens : tensor<2x3xi32> -> tensor<2x3xf32>
  %loss = ft.reduce "sum" %x over [0, 1] : tensor<2x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
