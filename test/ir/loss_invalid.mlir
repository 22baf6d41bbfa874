// RUN: ft-opt %s --split-input-file --verify-diagnostics

func.func @targets(%logits: tensor<2x3x8xf32>, %targets: tensor<6xi32>) {
  // expected-error @below {{'ft.cross_entropy' op targets is 6; expected 2x3, one per row of logits, which is 2x3x8}}
  %0 = ft.cross_entropy %logits, %targets : (tensor<2x3x8xf32>, tensor<6xi32>) -> tensor<f32>
  return
}

// -----

func.func @loss(%logits: tensor<2x3x8xf32>, %targets: tensor<2x3xi32>) {
  // expected-error @below {{result #0 must be 0D tensor of 32-bit float values, but got 'tensor<1xf32>'}}
  %0 = ft.cross_entropy %logits, %targets : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> tensor<1xf32>
  return
}

// -----

func.func @linear(%x: tensor<3x4xf32>, %w: tensor<8x5xf32>, %targets: tensor<3xi32>) {
  // expected-error @below {{'ft.linear_cross_entropy' op x has 4 columns but weight has 5; x is 3x4, weight is 8x5}}
  %0 = ft.linear_cross_entropy %x, %w, %targets : (tensor<3x4xf32>, tensor<8x5xf32>, tensor<3xi32>) -> tensor<f32>
  return
}

// -----

func.func @linear_weight(%x: tensor<3x4xf32>, %w: tensor<4xf32>, %targets: tensor<3xi32>) {
  // expected-error @below {{weight is 4; expected 2 dimensions, [vocabulary, width]}}
  %0 = ft.linear_cross_entropy %x, %w, %targets : (tensor<3x4xf32>, tensor<4xf32>, tensor<3xi32>) -> tensor<f32>
  return
}

// -----

func.func @linear_grad(%d: tensor<f32>, %x: tensor<3x4xf32>, %w: tensor<8x4xf32>, %targets: tensor<3xi32>) {
  // expected-error @below {{dweight is 4x8; expected 8x4, the shape of weight}}
  %0:2 = ft.linear_cross_entropy_grad %d, %x, %w, %targets : (tensor<f32>, tensor<3x4xf32>, tensor<8x4xf32>, tensor<3xi32>) -> (tensor<3x4xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @linear_loss_grad(%x: tensor<3x4xf32>, %w: tensor<8x4xf32>, %targets: tensor<3xi32>, %acc: tensor<8xf32>) {
  // expected-error @below {{acc is 'tensor<8xf32>'; expected the type of dweight, 'tensor<8x4xf32>'}}
  %0:3 = ft.linear_cross_entropy_loss_grad %x, %w, %targets into %acc dloss 1.0 : (tensor<3x4xf32>, tensor<8x4xf32>, tensor<3xi32>, tensor<8xf32>) -> (tensor<f32>, tensor<3x4xf32>, tensor<8x4xf32>)
  return
}

// -----

func.func @rng(%logits: tensor<3x4xf32>, %rng: tensor<2xi64>) {
  // expected-error @below {{'ft.sample_bits' op rng is 'tensor<2xi64>'; expected 'tensor<3xi64>': seed, step, rank}}
  %0 = ft.sample_bits %logits, %rng stream 1 : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<3xi32>
  return
}

// -----

func.func @index(%logits: tensor<3x4xf32>, %rng: tensor<3xi64>) {
  // expected-error @below {{index is 3x4; expected 3, the positions of logits}}
  %0 = ft.sample_bits %logits, %rng stream 1 : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<3x4xi32>
  return
}

// -----

func.func @bits(%logits: tensor<3x40xf32>, %rng: tensor<3xi64>) {
  // expected-error @below {{logits have 40 bits; expected at most 24}}
  %0 = ft.sample_bits %logits, %rng stream 1 : (tensor<3x40xf32>, tensor<3xi64>) -> tensor<3xi32>
  return
}

// -----

func.func @codes(%logits: tensor<3x4xf32>, %index: tensor<3xi32>, %table: tensor<8x5xf32>) {
  // expected-error @below {{'ft.binary_mapper' op table has 8 rows; expected 16, one per code of 4 bits}}
  %0 = ft.binary_mapper %logits, %index, %table : (tensor<3x4xf32>, tensor<3xi32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @mapped(%logits: tensor<3x4xf32>, %index: tensor<3xi32>, %table: tensor<16x5xf32>) {
  // expected-error @below {{result is 3x4; expected 3x5, the positions of logits and the width of table}}
  %0 = ft.binary_mapper %logits, %index, %table : (tensor<3x4xf32>, tensor<3xi32>, tensor<16x5xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @mapped_grad(%dy: tensor<3x4xf32>, %logits: tensor<3x4xf32>, %table: tensor<16x5xf32>) {
  // expected-error @below {{'ft.binary_mapper_grad' op dy is 3x4; expected 3x5, the positions of logits and the width of table}}
  %0 = ft.binary_mapper_grad %dy, %logits, %table : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<16x5xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @kappa(%logits: tensor<3x4xf32>) {
  // expected-error @below {{'ft.bits_kl' op kappa is -1.000000e+00; expected 0 or more nats}}
  %0 = ft.bits_kl %logits kappa -1.0 : (tensor<3x4xf32>) -> tensor<f32>
  return
}
