// RUN: ft-opt %s --split-input-file --ft-fuse-loss-grad | FileCheck %s

// The fused op stands where the forward op stood; the constant is folded into it.
// CHECK-LABEL: @constant
// CHECK-SAME:    %[[X:[^:]+]]: tensor<3x8xf32>, %[[W:[^:]+]]: tensor<16x8xf32>, %[[T:[^:]+]]: tensor<3xi32>
func.func @constant(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>) -> (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>) {
  // CHECK-NEXT: %[[LOSS:.*]], %[[DX:.*]], %[[DW:.*]] = ft.linear_cross_entropy_loss_grad %[[X]], %[[W]], %[[T]] dloss 6.0 {layer = "head", phase = "forward"}
  // CHECK-NEXT: %[[TWICE:.*]] = ft.scale %[[LOSS]], 2.0
  // CHECK-NEXT: return %[[TWICE]], %[[DX]], %[[DW]]
  %loss = ft.linear_cross_entropy %x, %w, %t {layer = "head", phase = "forward"} : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %twice = ft.scale %loss, 2.0 : tensor<f32>
  %three = ft.fill 3.0 : tensor<f32>
  %d = ft.scale %three, 2.0 : tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t {layer = "head", phase = "backward"} : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %twice, %dx, %dw : tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>
}

// -----

// The upstream gradient is not known before it runs.
// CHECK-LABEL: @variable
func.func @variable(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>) -> (tensor<f32>, tensor<3x8xf32>) {
  // CHECK: ft.linear_cross_entropy %
  // CHECK: ft.linear_cross_entropy_grad
  %loss = ft.linear_cross_entropy %x, %w, %t : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %d = ft.mul %loss, %loss : tensor<f32>, tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %loss, %dx : tensor<f32>, tensor<3x8xf32>
}

// -----

// Other targets: another loss.
// CHECK-LABEL: @another
func.func @another(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>, %u: tensor<3xi32>) -> (tensor<f32>, tensor<3x8xf32>) {
  // CHECK: ft.linear_cross_entropy %
  // CHECK: ft.linear_cross_entropy_grad
  %loss = ft.linear_cross_entropy %x, %w, %t : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %d = ft.fill 1.0 : tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %u : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %loss, %dx : tensor<f32>, tensor<3x8xf32>
}

// -----

// A sum that is known before the loss: it is continued in the forward op's place.
// CHECK-LABEL: @into_early
// CHECK-SAME:    %[[ACC:[^:]+]]: tensor<16x8xf32>) ->
func.func @into_early(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>, %acc: tensor<16x8xf32>) -> (tensor<f32>, tensor<16x8xf32>) {
  // CHECK-NEXT: %[[LOSS:.*]], %{{.*}}, %[[DW:.*]] = ft.linear_cross_entropy_loss_grad {{.*}} into %[[ACC]] dloss 1.0
  // CHECK-NEXT: return %[[LOSS]], %[[DW]]
  %loss = ft.linear_cross_entropy %x, %w, %t : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %d = ft.fill 1.0 : tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t into %acc : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>, tensor<16x8xf32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %loss, %dw : tensor<f32>, tensor<16x8xf32>
}

// -----

// A sum that is known later, and a loss that nobody needs before: the gradient op's place and phase.
// CHECK-LABEL: @into_late
func.func @into_late(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>) -> (tensor<f32>, tensor<16x8xf32>) {
  // CHECK-NEXT: %[[ACC:.*]] = ft.fill 7.0
  // CHECK-NEXT: %[[LOSS:.*]], %{{.*}}, %[[DW:.*]] = ft.linear_cross_entropy_loss_grad {{.*}} into %[[ACC]] dloss 1.0 {phase = "backward"}
  // CHECK-NEXT: return %[[LOSS]], %[[DW]]
  %loss = ft.linear_cross_entropy %x, %w, %t {phase = "forward"} : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %acc = ft.fill 7.0 : tensor<16x8xf32>
  %d = ft.fill 1.0 : tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t into %acc {phase = "backward"} : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>, tensor<16x8xf32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %loss, %dw : tensor<f32>, tensor<16x8xf32>
}

// -----

// A sum that is known later, and a loss that is needed before.
// CHECK-LABEL: @into_too_late
func.func @into_too_late(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>) -> (tensor<f32>, tensor<16x8xf32>) {
  // CHECK: ft.linear_cross_entropy %
  // CHECK: ft.linear_cross_entropy_grad
  %loss = ft.linear_cross_entropy %x, %w, %t : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %twice = ft.scale %loss, 2.0 : tensor<f32>
  %acc = ft.fill 7.0 : tensor<16x8xf32>
  %d = ft.fill 1.0 : tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t into %acc : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>, tensor<16x8xf32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %twice, %dw : tensor<f32>, tensor<16x8xf32>
}

// -----

// The loss scale is an input, so it is known as early as the loss.
// CHECK-LABEL: @scaled
// CHECK-SAME:    %[[X:[^:]+]]: tensor<3x8xf32>, %[[W:[^:]+]]: tensor<16x8xf32>, %[[T:[^:]+]]: tensor<3xi32>
func.func @scaled(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>) -> (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>) {
  // CHECK-NEXT: %[[SCALER:.*]] = ft.input "scaler" {layer = "head", phase = "forward"}
  // CHECK-NEXT: %[[SCALE:.*]] = ft.loss_scale %[[SCALER]] factor 0.25 {layer = "head", phase = "forward"}
  // CHECK-NEXT: ft.linear_cross_entropy_loss_grad %[[X]], %[[W]], %[[T]] dloss 3.0 times %[[SCALE]] {layer = "head", phase = "forward"}
  // CHECK-NEXT: return
  %loss = ft.linear_cross_entropy %x, %w, %t {layer = "head", phase = "forward"} : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %scaler = ft.input "scaler" {layer = "head", phase = "backward"} : tensor<3xf32>
  %scale = ft.loss_scale %scaler factor 0.25 {layer = "head", phase = "backward"} : (tensor<3xf32>) -> tensor<f32>
  %d = ft.scale %scale, 3.0 {phase = "backward"} : tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t {layer = "head", phase = "backward"} : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %loss, %dx, %dw : tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>
}

// -----

// So is the number of ranks, and what the loss weighs; an op that moves keeps its number.
// CHECK-LABEL: @mean
// CHECK-SAME:    %[[X:[^:]+]]: tensor<3x8xf32>, %[[W:[^:]+]]: tensor<16x8xf32>, %[[T:[^:]+]]: tensor<3xi32>, %[[SHARE:[^:]+]]: tensor<f32>
func.func @mean(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>, %share: tensor<f32>) -> (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>) {
  // CHECK-NEXT: %[[INVERSE:.*]] = ft.input "inverse_ranks" {layer = "head", phase = "forward"}
  // CHECK-NEXT: %[[SCALE:.*]] = ft.scale %[[INVERSE]], 0.25 {layer = "head", phase = "forward"}
  // CHECK-NEXT: %[[SEED:.*]] = ft.mul %[[SCALE]], %[[SHARE]] {layer = "head", phase = "forward"}
  // CHECK-NEXT: ft.linear_cross_entropy_loss_grad %[[X]], %[[W]], %[[T]] dloss 1.0 times %[[SEED]] {layer = "head", phase = "forward"}
  // CHECK-NEXT: return
  %loss = ft.linear_cross_entropy %x, %w, %t {layer = "head", phase = "forward"} : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %inverse = ft.input "inverse_ranks" {layer = "head", phase = "backward"} : tensor<f32>
  %scale = ft.scale %inverse, 0.25 {layer = "head", phase = "backward"} : tensor<f32>
  %d = ft.mul %scale, %share {phase = "backward"} : tensor<f32>, tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t {layer = "head", phase = "backward"} : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %loss, %dx, %dw : tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>
}

// -----

// In the gradient op's place it is there already.
// CHECK-LABEL: @scaled_late
func.func @scaled_late(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>) -> (tensor<f32>, tensor<16x8xf32>) {
  // CHECK-NEXT: %[[ACC:.*]] = ft.fill 7.0
  // CHECK-NEXT: %[[SCALER:.*]] = ft.input "scaler" {phase = "backward"}
  // CHECK-NEXT: %[[SCALE:.*]] = ft.loss_scale %[[SCALER]] factor 1.0 {phase = "backward"}
  // CHECK-NEXT: ft.linear_cross_entropy_loss_grad {{.*}} into %[[ACC]] dloss 1.0 times %[[SCALE]] {phase = "backward"}
  // CHECK-NEXT: return
  %loss = ft.linear_cross_entropy %x, %w, %t {phase = "forward"} : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %acc = ft.fill 7.0 : tensor<16x8xf32>
  %scaler = ft.input "scaler" {phase = "backward"} : tensor<3xf32>
  %d = ft.loss_scale %scaler factor 1.0 {phase = "backward"} : (tensor<3xf32>) -> tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t into %acc {phase = "backward"} : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>, tensor<16x8xf32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  return %loss, %dw : tensor<f32>, tensor<16x8xf32>
}

// -----

// What the loss weighs is known, too; the number it is multiplied by is folded into the op, and both products with the loss scale come before it.
// CHECK-LABEL: @weighed
func.func @weighed(%x: tensor<3x8xf32>, %w: tensor<16x8xf32>, %t: tensor<3xi32>, %u: tensor<16xi32>) -> (tensor<f32>, tensor<3x8xf32>, tensor<3x8xf32>) {
  // CHECK-NEXT: %{{.*}}, %[[SHARE:.*]] = ft.count_targets
  // CHECK-NEXT: %[[LOSS:.*]], %[[DX:.*]], %{{.*}} = ft.linear_cross_entropy_loss_grad {{.*}} dloss 0.25 times %[[SHARE]] {phase = "forward"}
  // CHECK-NEXT: %[[SCALER:.*]] = ft.input "scaler" {phase = "forward"}
  // CHECK-NEXT: %[[SCALE:.*]] = ft.loss_scale %[[SCALER]] factor 1.0 {phase = "forward"}
  // CHECK-NEXT: %[[BOTH:.*]] = ft.mul %[[SCALE]], %[[SHARE]] {phase = "forward"}
  // CHECK-NEXT: %{{.*}}, %{{.*}}, %[[DY:.*]] = ft.linear_cross_entropy_loss_grad {{.*}} dloss 1.0 times %[[BOTH]] {phase = "forward"}
  // CHECK-NEXT: return %[[LOSS]], %[[DX]], %[[DY]]
  %count, %share = ft.count_targets %t of 3 {phase = "forward"} : (tensor<3xi32>) -> (tensor<2xi64>, tensor<f32>)
  %loss = ft.linear_cross_entropy %x, %w, %t {phase = "forward"} : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> tensor<f32>
  %other = ft.linear_cross_entropy %w, %x, %u {phase = "forward"} : (tensor<16x8xf32>, tensor<3x8xf32>, tensor<16xi32>) -> tensor<f32>
  %quarter = ft.fill 0.25 {phase = "backward"} : tensor<f32>
  %d = ft.mul %quarter, %share {phase = "backward"} : tensor<f32>, tensor<f32>
  %dx, %dw = ft.linear_cross_entropy_grad %d, %x, %w, %t {phase = "backward"} : (tensor<f32>, tensor<3x8xf32>, tensor<16x8xf32>, tensor<3xi32>) -> (tensor<3x8xf32>, tensor<16x8xf32>)
  %scaler = ft.input "scaler" {phase = "backward"} : tensor<3xf32>
  %scale = ft.loss_scale %scaler factor 1.0 {phase = "backward"} : (tensor<3xf32>) -> tensor<f32>
  %e = ft.mul %scale, %share {phase = "backward"} : tensor<f32>, tensor<f32>
  %dv, %dy = ft.linear_cross_entropy_grad %e, %w, %x, %u {phase = "backward"} : (tensor<f32>, tensor<16x8xf32>, tensor<3x8xf32>, tensor<16xi32>) -> (tensor<16x8xf32>, tensor<3x8xf32>)
  return %loss, %dx, %dy : tensor<f32>, tensor<3x8xf32>, tensor<3x8xf32>
}
