// RUN: ft-opt %s | ft-opt | FileCheck %s
// RUN: ft-opt %s --mlir-print-op-generic | ft-opt | FileCheck %s

// Gradient ops, printed and parsed again.

ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 0.02>

// CHECK-LABEL: func.func @lookups
func.func @lookups(%ids: tensor<2x3xi32>, %dy: tensor<2x3x4xf32>, %acc: tensor<8x4xf32>) {
  // CHECK: ft.embedding_grad %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<2x3x4xf32>) -> tensor<8x4xf32>
  %0 = ft.embedding_grad %ids, %dy : (tensor<2x3xi32>, tensor<2x3x4xf32>) -> tensor<8x4xf32>
  // CHECK: ft.embedding_grad %{{.*}}, %{{.*}} into %{{.*}} {phase = "backward"} :
  %1 = ft.embedding_grad %ids, %dy into %acc {phase = "backward"} : (tensor<2x3xi32>, tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: ft.gradient @w, %{{.*}} : tensor<8x4xf32>
  ft.gradient @w, %1 : tensor<8x4xf32>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%x: tensor<2x3x8xf32>, %k: tensor<2x3x4xf32>, %lse: tensor<2x4x3xf32>) {
  // CHECK: ft.attention_grad %{{.*}} heads 4 kv_heads 2 causal : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  %2:3 = ft.attention_grad %x, %x, %k, %k, %x, %lse heads 4 kv_heads 2 causal : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  // CHECK: ft.attention_grad %{{.*}} heads 4 kv_heads 2 causal window 2 scale 1.250000e-01 softcap 5.000000e+01 alibi :
  %3:3 = ft.attention_grad %x, %x, %k, %k, %x, %lse heads 4 kv_heads 2 causal window 2 scale 0.125 softcap 50.0 alibi : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  return
}

// CHECK-LABEL: func.func @losses
func.func @losses(%x: tensor<2x3x4xf32>, %w: tensor<8x4xf32>, %logits: tensor<2x3x8xf32>, %targets: tensor<2x3xi32>) {
  %dloss = ft.fill 1.0 : tensor<f32>
  // CHECK: ft.linear_cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}} : (tensor<f32>, tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3xi32>, tensor<8x4xf32>) -> (tensor<2x3x4xf32>, tensor<8x4xf32>)
  %1:2 = ft.linear_cross_entropy_grad %dloss, %x, %w, %targets into %w : (tensor<f32>, tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3xi32>, tensor<8x4xf32>) -> (tensor<2x3x4xf32>, tensor<8x4xf32>)
  // CHECK: ft.linear_cross_entropy_loss_grad %{{.*}}, %{{.*}}, %{{.*}} dloss 1.0 : (tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3xi32>) -> (tensor<f32>, tensor<2x3x4xf32>, tensor<8x4xf32>)
  %2:3 = ft.linear_cross_entropy_loss_grad %x, %w, %targets dloss 1.0 : (tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3xi32>) -> (tensor<f32>, tensor<2x3x4xf32>, tensor<8x4xf32>)
  return
}

// CHECK-LABEL: func.func @latent
func.func @latent(%dy: tensor<2x3x8xf32>, %logits: tensor<2x3x2xf32>, %table: tensor<4x8xf32>) {
  // CHECK: ft.binary_mapper_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x8xf32>, tensor<2x3x2xf32>, tensor<4x8xf32>) -> tensor<2x3x2xf32>
  %0 = ft.binary_mapper_grad %dy, %logits, %table : (tensor<2x3x8xf32>, tensor<2x3x2xf32>, tensor<4x8xf32>) -> tensor<2x3x2xf32>
  return
}
