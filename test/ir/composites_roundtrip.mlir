// RUN: ft-opt %s | ft-opt | FileCheck %s

// CHECK: func.func private @soft_cap(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {ft.composite} {
func.func private @soft_cap(%x: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {ft.composite} {
  %s = ft.scale %x, 0.5 : tensor<2x3xf32>
  %t = ft.tanh %s : tensor<2x3xf32>
  %y = ft.scale %t, 2.0 : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<2x3xf32>, %h: tensor<2x3xbf16>) {
  // CHECK: ft.call @soft_cap(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = ft.call @soft_cap(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // Floats of 16 bits go in and out where the function has f32.
  // CHECK: ft.call @soft_cap(%arg1) {layer = "h.0"} : (tensor<2x3xbf16>) -> tensor<2x3xf16>
  %1 = ft.call @soft_cap(%h) {layer = "h.0"} : (tensor<2x3xbf16>) -> tensor<2x3xf16>
  // CHECK: ft.call @soft_cap(%arg0) parameter_grads [0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = ft.call @soft_cap(%x) parameter_grads [0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ft.softmax %arg0 {layer = "h.0"} : tensor<2x3xf32>
  %3 = ft.softmax %x {layer = "h.0"} : tensor<2x3xf32>
  // CHECK: ft.qk_norm %arg0, %{{.*}} heads 1 eps 1.0e-06 : tensor<2x3xf32>, tensor<3xf32>
  %w = ft.fill 1.0 : tensor<3xf32>
  %4 = ft.qk_norm %x, %w heads 1 eps 1.0e-6 : tensor<2x3xf32>, tensor<3xf32>
  return
}
