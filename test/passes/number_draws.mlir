// RUN: ft-opt %s --ft-outline-composites | FileCheck %s
// RUN: ft-opt %s --ft-outline-composites --ft-autodiff | FileCheck %s --check-prefix=GRAD
// RUN: ft-opt %s --ft-outline-composites --ft-expand-composites | FileCheck %s --check-prefix=EXPAND
// Streams in composites are names; each call has its own, behind those that the model names. Gradients draw the same.

ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 1.0>

// CHECK: func.func private @noise
// CHECK: ft.random_bits {{.*}} stream 0
// CHECK: ft.call @dropout(%{{.*}}, %{{.*}}) streams [1]
// CHECK: ft.random_bits {{.*}} stream 0
func.func private @noise(%x: tensor<1x3x4xf32>, %rng: tensor<3xi64>) -> tensor<1x3x4xf32> attributes {ft.composite} {
  %a = ft.random_bits %rng stream 9 : tensor<3xi64> -> tensor<1x3x4xi32>
  %d = ft.dropout %x, %rng rate 0.5 stream 4 : tensor<1x3x4xf32>, tensor<3xi64>
  %b = ft.random_bits %rng stream 9 : tensor<3xi64> -> tensor<1x3x4xi32>
  %s = ft.sub %a, %b : tensor<1x3x4xi32>
  %f = ft.convert %s : tensor<1x3x4xi32> -> tensor<1x3x4xf32>
  %y = ft.add %d, %f : tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}
func.func @forward(%tokens: tensor<1x3xi32>, %targets: tensor<1x3xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<8x4xf32>
  %rng = ft.input "rng" : tensor<3xi64>
  %x = ft.embedding %tokens, %w : (tensor<1x3xi32>, tensor<8x4xf32>) -> tensor<1x3x4xf32>
  // CHECK: ft.call @noise({{.*}}) streams [6, 7]
  // EXPAND: ft.random_bits {{.*}} stream 6
  // EXPAND: ft.random_bits {{.*}} stream 7
  // EXPAND: ft.random_bits {{.*}} stream 6
  %a = ft.call @noise(%x, %rng) : (tensor<1x3x4xf32>, tensor<3xi64>) -> tensor<1x3x4xf32>
  // CHECK: ft.call @dropout({{.*}}) streams [5]
  // EXPAND: ft.random_bits {{.*}} stream 5
  %b = ft.dropout %a, %rng rate 0.5 stream 5 : tensor<1x3x4xf32>, tensor<3xi64>
  // CHECK: ft.call @noise({{.*}}) streams [8, 9]
  %c = ft.call @noise(%b, %rng) : (tensor<1x3x4xf32>, tensor<3xi64>) -> tensor<1x3x4xf32>
  %l = ft.matmul %c, %w transpose_b : (tensor<1x3x4xf32>, tensor<8x4xf32>) -> tensor<1x3x8xf32>
  %loss = ft.cross_entropy %l, %targets : (tensor<1x3x8xf32>, tensor<1x3xi32>) -> tensor<f32>
  // What was multiplied is not read.
  // GRAD: ft.call @noise.grad(%rng, %{{.*}}) streams [8, 9]
  // GRAD: ft.call @dropout.grad(%rng, %{{.*}}) streams [5]
  // GRAD: ft.call @noise.grad(%rng, %{{.*}}) streams [6, 7]
  return %loss : tensor<f32>
}
// GRAD: func.func private @noise.grad
// GRAD: ft.call @dropout.grad(%{{.*}}, %{{.*}}) streams [1]
