// RUN: ft-opt %s --ft-outline-composites | FileCheck %s
// ft.rope is ft.rotate by a table at the beginning, which all that have its base and size share.

// CHECK-LABEL: @forward
// CHECK: %[[OTHER:.*]], %[[OTHER_SINE:.*]] = ft.rotary_table base 500000.0 {layer = "embed"} : tensor<3x2xf32>
// CHECK: %[[TABLE:.*]], %[[SINE:.*]] = ft.rotary_table base 10000.0 {layer = "embed"} : tensor<3x2xf32>
// CHECK-NOT: ft.rotary_table
func.func @forward(%a: tensor<2x3x8xf32>, %b: tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>) {
  %x = ft.neg %a {layer = "embed"} : tensor<2x3x8xf32>
  // CHECK: ft.call @rotate(%{{.*}}, %[[TABLE]], %[[SINE]]) {layer = "h.0"}
  %q = ft.rope %x heads 2 base 10000.0 {layer = "h.0"} : tensor<2x3x8xf32>
  // CHECK: ft.call @rotate_0(%{{.*}}, %[[TABLE]], %[[SINE]]) {layer = "h.0"}
  %k = ft.rope %b heads 1 base 10000.0 {layer = "h.0"} : tensor<2x3x4xf32>
  // CHECK: ft.call @rotate(%{{.*}}, %[[OTHER]], %[[OTHER_SINE]]) {layer = "h.1"}
  %r = ft.rope %q heads 2 base 500000.0 {layer = "h.1"} : tensor<2x3x8xf32>
  return %r, %k : tensor<2x3x8xf32>, tensor<2x3x4xf32>
}
// CHECK: func.func private @rotate(
// CHECK: func.func private @rotate_0(
