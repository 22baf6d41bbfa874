// RUN: ft-opt %s --split-input-file --ft-outline-composites --ft-autodiff --ft-verify-autodiff | FileCheck %s
// What each rule builds. That it is right is for test/gradients to say.

ft.parameter @table : tensor<8x8xf32> = #ft.init<normal, 1.0>
ft.parameter @norm : tensor<8xf32> = #ft.init<constant, 1.0>
ft.parameter @bias : tensor<8xf32> = #ft.init<constant, 0.0>
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<1x4xi32>, %targets: tensor<1x4xi32>) -> tensor<f32> {
  // CHECK: %[[COS:.*]], %[[SIN:.*]] = ft.rotary_table base 10000.0 {{.*}}: tensor<4x2xf32>
  // CHECK: %[[TABLE:.*]] = ft.get @table
  %table = ft.get @table : tensor<8x8xf32>
  %norm = ft.get @norm : tensor<8xf32>
  %bias = ft.get @bias : tensor<8xf32>
  // CHECK: %[[X:.*]] = ft.embedding
  %x = ft.embedding %tokens, %table : (tensor<1x4xi32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
  // CHECK: %[[N:.*]] = ft.call @rms_norm(%[[X]], %norm)
  %n = ft.rms_norm %x, %norm eps 1.0e-5 : tensor<1x4x8xf32>, tensor<8xf32>
  // CHECK: %[[L:.*]] = ft.call @layer_norm(%[[N]], %norm, %bias)
  %l = ft.layer_norm %n, %norm, %bias eps 1.0e-6 : tensor<1x4x8xf32>, tensor<8xf32>, tensor<8xf32>
  // CHECK: %[[R:.*]] = ft.call @rotate(%[[L]], %[[COS]], %[[SIN]])
  %r = ft.rope %l heads 2 base 1.0e4 : tensor<1x4x8xf32>
  // CHECK: %[[A:.*]], %[[LSE:.*]] = ft.attention
  %a, %lse = ft.attention %r, %r, %l heads 2 kv_heads 2 causal : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
  // CHECK: %[[G:.*]] = ft.call @gelu(%[[A]])
  %g = ft.gelu %a approximate "tanh" : tensor<1x4x8xf32>
  // CHECK: %[[U:.*]] = ft.scale
  %u = ft.scale %g, 3.0 : tensor<1x4x8xf32>
  %s = ft.swiglu %g, %u : tensor<1x4x8xf32>
  %loss = ft.cross_entropy %s, %targets : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
  // CHECK: %[[DS:.*]] = ft.call @cross_entropy.grad
  // CHECK: %[[SWIGLU:.*]]:2 = ft.call @swiglu.grad(%[[G]], %[[U]], %[[DS]])
  // CHECK: %[[DU:.*]] = ft.scale %[[SWIGLU]]#1, 3.0
  // CHECK: %[[DG:.*]] = ft.add %[[SWIGLU]]#0, %[[DU]]
  // CHECK: %[[DA:.*]] = ft.call @gelu.grad(%[[A]], %[[DG]])
  // CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = ft.attention_grad %[[DA]], %[[R]], %[[R]], %[[L]], %[[A]], %[[LSE]] heads 2 kv_heads 2 causal
  // CHECK: %[[DR:.*]] = ft.add %[[DQ]], %[[DK]]
  // CHECK: %[[DL1:.*]] = ft.call @rotate.grad_0(%[[COS]], %[[SIN]], %[[DR]])
  // CHECK: %[[DL:.*]] = ft.add %[[DV]], %[[DL1]]
  // CHECK: %[[LAYER:.*]]:3 = ft.call @layer_norm.grad(%[[N]], %norm, %[[DL]]) parameter_grads [1, 2]
  // CHECK: ft.gradient @bias, %[[LAYER]]#2
  // CHECK: %[[RMS:.*]]:2 = ft.call @rms_norm.grad(%[[X]], %norm, %[[LAYER]]#0) parameter_grads [1]
  // CHECK: %[[DNORM:.*]] = ft.add %[[LAYER]]#1, %[[RMS]]#1
  // CHECK: ft.gradient @norm, %[[DNORM]]
  // CHECK: %[[DTABLE:.*]] = ft.embedding_grad %{{.*}}, %[[RMS]]#0 {
  // CHECK: ft.gradient @table, %[[DTABLE]]
  return %loss : tensor<f32>
}

// -----

// The latent variable: sampled bits carry no derivative, the mapper's rule goes around them.
ft.parameter @logits : tensor<1x4x3xf32> = #ft.init<normal, 1.0>
ft.parameter @table : tensor<8x5xf32> = #ft.init<normal, 1.0>
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<1x4xi32>, %targets: tensor<1x4xi32>) -> tensor<f32> {
  // CHECK: %[[LOGITS:.*]] = ft.get @logits
  %logits = ft.get @logits : tensor<1x4x3xf32>
  // CHECK: %[[TABLE:.*]] = ft.get @table
  %table = ft.get @table : tensor<8x5xf32>
  %rng = ft.input "rng" : tensor<3xi64>
  // CHECK: %[[INDEX:.*]] = ft.call @sample_bits
  %index = ft.sample_bits %logits, %rng stream 1 : (tensor<1x4x3xf32>, tensor<3xi64>) -> tensor<1x4xi32>
  %r = ft.binary_mapper %logits, %index, %table : (tensor<1x4x3xf32>, tensor<1x4xi32>, tensor<8x5xf32>) -> tensor<1x4x5xf32>
  %ce = ft.cross_entropy %r, %targets : (tensor<1x4x5xf32>, tensor<1x4xi32>) -> tensor<f32>
  %kl = ft.bits_kl %logits kappa 0.5 : (tensor<1x4x3xf32>) -> tensor<f32>
  %loss = ft.add %ce, %kl : tensor<f32>, tensor<f32>
  // CHECK: %[[ONE:.*]] = ft.fill 1.0
  // CHECK: %[[DL1:.*]] = ft.call @bits_kl.grad(%[[LOGITS]], %[[ONE]])
  // CHECK: %[[DR:.*]] = ft.call @cross_entropy.grad(%[[R:.*]], %{{.*}}, %[[ONE]])
  // CHECK: %[[DTABLE:.*]] = ft.embedding_grad %[[INDEX]], %[[DR]] {
  // CHECK: %[[DL2:.*]] = ft.binary_mapper_grad %[[DR]], %[[LOGITS]], %[[TABLE]]
  // CHECK: %[[DL:.*]] = ft.add %[[DL1]], %[[DL2]]
  // CHECK: ft.gradient @logits, %[[DL]]
  // CHECK: ft.gradient @table, %[[DTABLE]]
  return %loss : tensor<f32>
}
