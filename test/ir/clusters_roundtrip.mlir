// RUN: ft-opt %s | ft-opt | FileCheck %s
// RUN: ft-opt %s --mlir-print-op-generic | ft-opt | FileCheck %s
// RUN: not ftc compile --strategy=no_shard %s 2>&1 | FileCheck %s --check-prefix=MODEL

// CHECK: ft.cluster @twice(%{{.*}}) partial_bytes [0, 0] in_place [0] : (tensor<4xf32>) -> tensor<4xf32>
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = ft.cluster @twice(%x) partial_bytes [0, 0] in_place [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// MODEL: clusters_roundtrip.mlir:[[@LINE+1]]:1: error: a model has one function, @forward, and composites, {{.*}}; what is @twice?
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ft.cluster} {
  %y = ft.add %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
