// RUN: ft-opt %s --split-input-file --ft-fuse-qkv-attention | FileCheck %s

// CHECK-LABEL: @forward
// CHECK-SAME:    %[[X:[^:]+]]: tensor<2x3x16xf32>
func.func @forward(%x: tensor<2x3x16xf32>) -> tensor<2x3x8xf32> {
  // CHECK-NEXT: %[[OUT:.*]], %{{.*}} = ft.qkv_attention %[[X]] heads 4 kv_heads 2 causal {layer = "h.0"} : (tensor<2x3x16xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  // CHECK-NEXT: return %[[OUT]]
  %q, %k, %v = ft.split %x {layer = "h.0"} : tensor<2x3x16xf32> -> tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %out, %lse = ft.attention %q, %k, %v heads 4 kv_heads 2 causal {layer = "h.0"} : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %out : tensor<2x3x8xf32>
}

// -----

// What is said of the scores stays.
// CHECK-LABEL: @scores
func.func @scores(%x: tensor<2x3x16xf32>) -> tensor<2x3x8xf32> {
  // CHECK: ft.qkv_attention %{{.*}} heads 4 kv_heads 2 causal window 2 scale 1.250000e-01 softcap 5.000000e+01 alibi :
  %q, %k, %v = ft.split %x : tensor<2x3x16xf32> -> tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %out, %lse = ft.attention %q, %k, %v heads 4 kv_heads 2 causal window 2 scale 0.125 softcap 50.0 alibi : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %out : tensor<2x3x8xf32>
}

// -----

// So does what is said of keys and probabilities.
// CHECK-LABEL: @options
// CHECK-SAME:    %[[X:[^:]+]]: tensor<2x3x16xf32>, %[[N:[^:]+]]: tensor<2xi32>, %[[S:[^:]+]]: tensor<2x3xi32>, %[[RNG:[^:]+]]: tensor<3xi64>
func.func @options(%x: tensor<2x3x16xf32>, %n: tensor<2xi32>, %s: tensor<2x3xi32>, %rng: tensor<3xi64>) -> tensor<2x3x8xf32> {
  // CHECK-NEXT: ft.qkv_attention %[[X]] lengths %[[N]] segments %[[S]] dropout 5.000000e-01 rng %[[RNG]] stream 2 heads 4 kv_heads 2 :
  %q, %k, %v = ft.split %x : tensor<2x3x16xf32> -> tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %out, %lse = ft.attention %q, %k, %v lengths %n segments %s dropout 0.5 rng %rng stream 2 heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2xi32>, tensor<2x3xi32>, tensor<3xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %out : tensor<2x3x8xf32>
}

// -----

// k and v are not in this order.
// CHECK-LABEL: @order
func.func @order(%x: tensor<2x3x16xf32>) -> tensor<2x3x8xf32> {
  // CHECK: ft.split
  // CHECK: ft.attention
  %q, %v, %k = ft.split %x : tensor<2x3x16xf32> -> tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %out, %lse = ft.attention %q, %k, %v heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %out : tensor<2x3x8xf32>
}

// -----

// Somebody else needs the keys.
// CHECK-LABEL: @shared
func.func @shared(%x: tensor<2x3x16xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>) {
  // CHECK: ft.split
  // CHECK: ft.attention
  %q, %k, %v = ft.split %x : tensor<2x3x16xf32> -> tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %out, %lse = ft.attention %q, %k, %v heads 4 kv_heads 2 : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %out, %k : tensor<2x3x8xf32>, tensor<2x3x4xf32>
}

// -----

// The queries are rotated first.
// CHECK-LABEL: @rotated
func.func @rotated(%x: tensor<2x3x24xf32>) -> tensor<2x3x8xf32> {
  // CHECK: ft.split
  // CHECK: ft.attention
  %a, %k, %v = ft.split %x : tensor<2x3x24xf32> -> tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>
  %q = ft.rope %a heads 4 base 10000.0 : tensor<2x3x8xf32>
  %out, %lse = ft.attention %q, %k, %v heads 4 kv_heads 4 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %out : tensor<2x3x8xf32>
}

// -----

// One part more than attention reads.
// CHECK-LABEL: @gated
func.func @gated(%x: tensor<2x3x32xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  // CHECK: ft.split
  // CHECK: ft.attention
  %q, %k, %v, %g = ft.split %x : tensor<2x3x32xf32> -> tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>
  %out, %lse = ft.attention %q, %k, %v heads 4 kv_heads 4 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %out, %g : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}
