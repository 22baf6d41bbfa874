// RUN: ft-opt %s --ft-outline-composites | FileCheck %s
// RUN: ftc compile %s --strategy=full_shard -o %t && ftc compile %s --strategy=hybrid_shard -o %t

// What a composite returns as it was given is the operand, which its readers read themselves: a unit stays gathered for them.

ft.parameter @q : tensor<2x3xf32> = #ft.init<normal, 0.5>

func.func private @inner(%a: tensor<2x3xf32>, %x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {ft.composite} {
  %y = ft.mul %a, %x : tensor<2x3xf32>, tensor<2x3xf32>
  return %y, %a : tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK: func.func private @outer(%[[A:[^:]*]]: tensor<2x3xf32>
// CHECK: return %{{.*}}, %[[A]]
func.func private @outer(%a: tensor<2x3xf32>, %x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {ft.composite} {
  %y:2 = ft.call @inner(%a, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return %y#0, %y#1 : tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x3xf32> {ft.input = "x"}) -> tensor<f32> {
  // CHECK: %[[Q:.*]] = ft.get @q
  %q = ft.get @q {layer = "h.0"} : tensor<2x3xf32>
  // CHECK: %[[P:.*]]:2 = ft.call @outer(%[[Q]],
  %p:2 = ft.call @outer(%q, %x) {layer = "h.0"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: ft.mul %[[P]]#0, %[[Q]]
  %y = ft.mul %p#0, %p#1 {layer = "h.1"} : tensor<2x3xf32>, tensor<2x3xf32>
  %loss = ft.reduce "sum" %y over [0, 1] : tensor<2x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
