// RUN: ft-opt %s | ft-opt | FileCheck %s

// What attention is told of keys and probabilities: each is optional.

// CHECK-LABEL: func.func @forward
func.func @forward(%q: tensor<2x3x8xf32>, %k: tensor<2x3x4xf32>, %qkv: tensor<2x3x16xf32>, %n: tensor<2xi32>, %s: tensor<2x3xi32>, %rng: tensor<3xi64>) {
  // CHECK: ft.attention %{{.*}}, %{{.*}}, %{{.*}} lengths %{{.*}} heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2xi32>) ->
  %0:2 = ft.attention %q, %k, %k lengths %n heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2xi32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  // CHECK: ft.attention %{{.*}}, %{{.*}}, %{{.*}} segments %{{.*}} heads 4 kv_heads 2 causal :
  %1:2 = ft.attention %q, %k, %k segments %s heads 4 kv_heads 2 causal : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3xi32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  // CHECK: ft.attention %{{.*}}, %{{.*}}, %{{.*}} dropout 1.000000e-01 rng %{{.*}} stream 3 heads 4 kv_heads 2 :
  %2:2 = ft.attention %q, %k, %k dropout 0.1 rng %rng stream 3 heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  // CHECK: ft.qkv_attention %{{.*}} lengths %{{.*}} segments %{{.*}} dropout 1.000000e-01 rng %{{.*}} stream 3 heads 4 kv_heads 2 causal window 2 scale 1.250000e-01 softcap 5.000000e+01 alibi :
  %3:2 = ft.qkv_attention %qkv lengths %n segments %s dropout 0.1 rng %rng stream 3 heads 4 kv_heads 2 causal window 2 scale 0.125 softcap 50.0 alibi : (tensor<2x3x16xf32>, tensor<2xi32>, tensor<2x3xi32>, tensor<3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// CHECK-LABEL: func.func @backward
func.func @backward(%q: tensor<2x3x8xf32>, %k: tensor<2x3x4xf32>, %lse: tensor<2x4x3xf32>, %qkv: tensor<2x3x16xf32>, %n: tensor<2xi32>, %s: tensor<2x3xi32>, %rng: tensor<3xi64>) {
  // CHECK: ft.attention_grad %{{.*}} lengths %{{.*}} dropout 1.000000e-01 rng %{{.*}} stream 3 heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<2xi32>, tensor<3xi64>) ->
  %0:3 = ft.attention_grad %q, %q, %k, %k, %q, %lse lengths %n dropout 0.1 rng %rng stream 3 heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<2xi32>, tensor<3xi64>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  // CHECK: ft.qkv_attention_grad %{{.*}} segments %{{.*}} heads 4 kv_heads 2 :
  %1 = ft.qkv_attention_grad %q, %qkv, %q, %lse segments %s heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x16xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>, tensor<2x3xi32>) -> tensor<2x3x16xf32>
  return
}
