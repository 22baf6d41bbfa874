// RUN: ft-opt %s --ft-outline-composites --ft-autodiff --ft-verify-autodiff | FileCheck %s
// RUN: ft-opt %s --ft-outline-composites --ft-autodiff --ft-expand-composites | FileCheck %s --check-prefix=EXPANDED
// Calls are differentiated by calls, of one derivative for all that want the same of a composite.

ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 1.0>
ft.parameter @g : tensor<4xf32> = #ft.init<constant, 1.0>

// The integer has no gradient, and the second result none that is used.
func.func private @gated(%x: tensor<1x3x4xf32>, %g: tensor<4xf32>, %ids: tensor<1x3xi32>) -> (tensor<1x3x4xf32>, tensor<4xf32>) attributes {ft.composite} {
  %r = ft.call @squared(%x) : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %y = ft.mul %r, %g : tensor<1x3x4xf32>, tensor<4xf32>
  %n = ft.neg %g : tensor<4xf32>
  return %y, %n : tensor<1x3x4xf32>, tensor<4xf32>
}
func.func private @squared(%x: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> attributes {ft.composite} {
  %y = ft.square %x : tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}
// Its second operand takes no part.
func.func private @first(%a: tensor<1x3x4xf32>, %b: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> attributes {ft.composite} {
  %y = ft.neg %a : tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}
// Has the name that a derivative would have.
func.func private @squared.grad(%x: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> attributes {ft.composite} {
  return %x : tensor<1x3x4xf32>
}

// CHECK-LABEL: @train_step
// EXPANDED-LABEL: @train_step
func.func @forward(%tokens: tensor<1x3xi32>, %targets: tensor<1x3xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<8x4xf32>
  %g = ft.get @g : tensor<4xf32>
  // CHECK: %[[X:.*]] = ft.embedding
  %x = ft.embedding %tokens, %w : (tensor<1x3xi32>, tensor<8x4xf32>) -> tensor<1x3x4xf32>
  // CHECK: %[[A:.*]]:2 = ft.call @gated(%[[X]], %g, %arg0) {layer = "h.0", phase = "forward"}
  // EXPANDED: ft.square %{{.*}} {layer = "h.0", phase = "forward"}
  // EXPANDED-NEXT: ft.mul %{{.*}}, %{{.*}} {layer = "h.0", phase = "forward"}
  // EXPANDED-NEXT: ft.neg
  %a:2 = ft.call @gated(%x, %g, %tokens) {layer = "h.0"} : (tensor<1x3x4xf32>, tensor<4xf32>, tensor<1x3xi32>) -> (tensor<1x3x4xf32>, tensor<4xf32>)
  // CHECK: %[[B:.*]]:2 = ft.call @gated(%[[A]]#0, %g, %arg0) {layer = "h.1", phase = "forward"}
  %b:2 = ft.call @gated(%a#0, %g, %tokens) {layer = "h.1"} : (tensor<1x3x4xf32>, tensor<4xf32>, tensor<1x3xi32>) -> (tensor<1x3x4xf32>, tensor<4xf32>)
  %c = ft.call @first(%b#0, %b#0) {layer = "h.1"} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %l = ft.matmul %c, %w transpose_b : (tensor<1x3x4xf32>, tensor<8x4xf32>) -> tensor<1x3x8xf32>
  %loss = ft.cross_entropy %l, %targets : (tensor<1x3x8xf32>, tensor<1x3xi32>) -> tensor<f32>
  // CHECK: %[[DC:.*]] = ft.matmul {{.*}}, %w {phase = "backward"}
  // CHECK: %[[DB:.*]]:2 = ft.call @first.grad(%[[DC]]) {layer = "h.1", phase = "backward"}
  // CHECK: %[[SUM:.*]] = ft.add %[[DB]]#0, %[[DB]]#1
  // CHECK: %[[DA:.*]]:2 = ft.call @gated.grad_from_0(%[[A]]#0, %g, %[[SUM]]) parameter_grads [1] {layer = "h.1", phase = "backward"}
  // CHECK: ft.call @gated.grad_from_0(%[[X]], %g, %[[DA]]#0) parameter_grads [1] {layer = "h.0", phase = "backward"}
  // EXPANDED-NOT: ft.call
  return %loss : tensor<f32>
}
// The derivatives. What they need they compute again.
// CHECK: func.func private @first.grad(%[[DY:.*]]: tensor<1x3x4xf32>)
// CHECK-DAG: %[[DA:.*]] = ft.neg %[[DY]]
// CHECK-DAG: %[[ZERO:.*]] = ft.fill 0.0
// CHECK: return %[[DA]], %[[ZERO]]
// CHECK: func.func private @gated.grad_from_0(%[[X:.*]]: tensor<1x3x4xf32>, %[[G:.*]]: tensor<4xf32>, %[[DY:.*]]: tensor<1x3x4xf32>)
// CHECK-NEXT: %[[R:.*]] = ft.call @squared(%[[X]])
// CHECK-NEXT: ft.mul %[[DY]], %[[R]]
// CHECK-NEXT: ft.reduce "sum" %{{.*}} over [0, 1]
// CHECK-NEXT: %[[DR:.*]] = ft.mul %[[DY]], %[[G]]
// CHECK-NEXT: ft.call @squared.grad_0(%[[X]], %[[DR]])
// EXPANDED-NOT: ft.composite
