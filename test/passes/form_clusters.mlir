// RUN: ft-opt %s --ft-form-clusters | FileCheck %s
// RUN: ft-opt %s --ft-form-clusters=cluster-ops=1 | FileCheck %s --check-prefix=ALONE
// A norm by hand is one kernel, with what follows it; two layers that are alike share the body.

ft.parameter @w : tensor<16xf32> = #ft.init<constant, 1.0>

// CHECK-LABEL: @train_step
// ALONE-LABEL: @train_step
func.func @train_step(%x: tensor<2x8x16xbf16>, %m: tensor<16x16xbf16>, %w: tensor<16xf32>) -> (tensor<2x8x16xbf16>, tensor<16xf32>) {
  // CHECK: %[[Y:.*]] = ft.cluster @[[NORM:.*]](%arg0, %arg2) partial_bytes [0, 0] in_place [0] {layer = "h.0", phase = "forward"} : (tensor<2x8x16xbf16>, tensor<16xf32>) -> tensor<2x8x16xbf16>
  // ALONE: ft.cluster @{{.*}} -> tensor<2x8xf32>
  %zero = ft.fill 0.0 : tensor<f32>
  %x0 = ft.copy %x {layer = "h.0", phase = "forward"} : tensor<2x8x16xbf16> -> tensor<2x8x16xf32>
  %s0 = ft.square %x0 {layer = "h.0", phase = "forward"} : tensor<2x8x16xf32>
  %r0 = ft.reduce "sum" %s0 over [2] {layer = "h.0", phase = "forward"} : tensor<2x8x16xf32> -> tensor<2x8xf32>
  %q0 = ft.rsqrt %r0 {layer = "h.0", phase = "forward"} : tensor<2x8xf32>
  %c0 = ft.reshape %q0 {layer = "h.0", phase = "forward"} : tensor<2x8xf32> -> tensor<2x8x1xf32>
  %b0 = ft.broadcast %c0 {layer = "h.0", phase = "forward"} : tensor<2x8x1xf32> -> tensor<2x8x16xf32>
  %n0 = ft.mul %x0, %b0 {layer = "h.0", phase = "forward"} : tensor<2x8x16xf32>
  %a0 = ft.mul %n0, %w {layer = "h.0", phase = "forward"} : tensor<2x8x16xf32>, tensor<16xf32>
  %f0 = ft.add %a0, %zero {layer = "h.0", phase = "forward"} : tensor<2x8x16xf32>, tensor<f32>
  %y0 = ft.copy %f0 {layer = "h.0", phase = "forward"} : tensor<2x8x16xf32> -> tensor<2x8x16xbf16>
  // CHECK-NEXT: %[[P:.*]] = ft.matmul %[[Y]]
  %p = ft.matmul %y0, %m {layer = "h.0", phase = "forward"} : (tensor<2x8x16xbf16>, tensor<16x16xbf16>) -> tensor<2x8x16xbf16>
  // CHECK-NEXT: ft.cluster @[[NORM]](%[[P]], %arg2)
  %x1 = ft.copy %p {layer = "h.1", phase = "forward"} : tensor<2x8x16xbf16> -> tensor<2x8x16xf32>
  %s1 = ft.square %x1 {layer = "h.1", phase = "forward"} : tensor<2x8x16xf32>
  %r1 = ft.reduce "sum" %s1 over [2] {layer = "h.1", phase = "forward"} : tensor<2x8x16xf32> -> tensor<2x8xf32>
  %q1 = ft.rsqrt %r1 {layer = "h.1", phase = "forward"} : tensor<2x8xf32>
  %c1 = ft.reshape %q1 {layer = "h.1", phase = "forward"} : tensor<2x8xf32> -> tensor<2x8x1xf32>
  %b1 = ft.broadcast %c1 {layer = "h.1", phase = "forward"} : tensor<2x8x1xf32> -> tensor<2x8x16xf32>
  %n1 = ft.mul %x1, %b1 {layer = "h.1", phase = "forward"} : tensor<2x8x16xf32>
  %a1 = ft.mul %n1, %w {layer = "h.1", phase = "forward"} : tensor<2x8x16xf32>, tensor<16xf32>
  %f1 = ft.add %a1, %zero {layer = "h.1", phase = "forward"} : tensor<2x8x16xf32>, tensor<f32>
  %y1 = ft.copy %f1 {layer = "h.1", phase = "forward"} : tensor<2x8x16xf32> -> tensor<2x8x16xbf16>
  // Forward and backward are apart; a sum over rows ends a cluster. An op alone is a cluster, too.
  // CHECK-NEXT: ft.cluster @[[SUM:.*]](%arg0) partial_bytes {{\[64, [0-9]+\]}} in_place [-1] {phase = "backward"}
  %g = ft.copy %x {phase = "backward"} : tensor<2x8x16xbf16> -> tensor<2x8x16xf32>
  %dw = ft.reduce "sum" %g over [0, 1] {phase = "backward"} : tensor<2x8x16xf32> -> tensor<16xf32>
  // CHECK-NEXT: ft.cluster @[[TANH:.*]](%{{.*}}) partial_bytes [0, 0] in_place [0]
  // ALONE-NOT: ft.tanh %{{.*}}phase
  %t = ft.tanh %dw {phase = "backward"} : tensor<16xf32>
  return %y1, %t : tensor<2x8x16xbf16>, tensor<16xf32>
}

// What gives up a unit stays behind those that read it, and what stands between two ops is not passed by who needs it.
// CHECK-LABEL: @eval_step
func.func @eval_step(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: %[[E:.*]] = ft.cluster @[[EXP:.*]](%arg0)
  %e = ft.exp %x {phase = "forward"} : tensor<4x4xf32>
  // CHECK-NEXT: %[[P:.*]] = ft.matmul %[[E]]
  %p = ft.matmul %e, %x {phase = "forward"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: ft.cluster @{{.*}}(%[[E]], %[[P]])
  %s = ft.add %e, %p {phase = "forward"} : tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}

// What repeats in the middle, parts, heads that were transposed, and sums of any dimensions are read where they lie.
// CHECK-LABEL: @moved
func.func @moved(%x: tensor<2x3x8xf32>, %b: tensor<2x1x8xf32>, %q: tensor<3x2x8xf32>, %w: tensor<2x3x9xf32>) -> (tensor<2x3x8xf32>, tensor<3xi64>) {
  // CHECK-NEXT: %[[Y:.*]]:2 = ft.cluster @{{.*}}(%arg1, %arg2, %arg3, %arg0) partial_bytes [0, 0] in_place [3, -1] {{.*}} -> (tensor<2x3x8xf32>, tensor<2x3xi64>)
  %m = ft.broadcast %b {phase = "forward"} : tensor<2x1x8xf32> -> tensor<2x3x8xf32>
  %t = ft.transpose %q [1, 0, 2] {phase = "forward"} : tensor<3x2x8xf32> -> tensor<2x3x8xf32>
  %p = ft.slice %w at [0, 0, 1] {phase = "forward"} : tensor<2x3x9xf32> -> tensor<2x3x8xf32>
  %a = ft.add %x, %m {phase = "forward"} : tensor<2x3x8xf32>
  %c = ft.mul %a, %t {phase = "forward"} : tensor<2x3x8xf32>
  %y = ft.sub %c, %p {phase = "forward"} : tensor<2x3x8xf32>
  // CHECK-NEXT: ft.cluster @{{.*}}(%[[Y]]#1) {{.*}} -> tensor<3xi64>
  %i = ft.convert %y {phase = "forward"} : tensor<2x3x8xf32> -> tensor<2x3x8xi64>
  %s = ft.reduce "max" %i over [0, 2] {phase = "forward"} : tensor<2x3x8xi64> -> tensor<3xi64>
  return %y, %s : tensor<2x3x8xf32>, tensor<3xi64>
}

// What nobody reads is gone.
// CHECK-LABEL: @unread
func.func @unread(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: ft.cluster @{{.*}}(%arg0)
  // CHECK-NEXT: return
  %d = ft.exp %x {phase = "forward"} : tensor<2x3xf32>
  %r = ft.reduce "sum" %d over [0, 1] {phase = "forward"} : tensor<2x3xf32> -> tensor<f32>
  %y = ft.tanh %x {phase = "forward"} : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// Draws have numbers of their own in the body.
// CHECK-LABEL: @drawn
func.func @drawn(%rng: tensor<3xi64>) -> (tensor<4x6xi32>, tensor<4x6xi32>) {
  // CHECK-NEXT: ft.cluster @[[DRAWN:.*]](%arg0) partial_bytes [0, 0] in_place [-1, -1] streams [7, 3]
  %a = ft.random_bits %rng stream 7 {phase = "forward"} : tensor<3xi64> -> tensor<4x6xi32>
  %b = ft.random_bits %rng stream 3 {phase = "forward"} : tensor<3xi64> -> tensor<4x6xi32>
  %c = ft.add %a, %b {phase = "forward"} : tensor<4x6xi32>
  return %a, %c : tensor<4x6xi32>, tensor<4x6xi32>
}
// CHECK: func.func private @[[NORM]]({{.*}}) -> tensor<2x8x16xbf16> attributes {ft.cluster}
// CHECK: ft.fill
// CHECK: func.func private @[[SUM]](
// CHECK: func.func private @[[DRAWN]](
// CHECK: ft.random_bits %arg0 stream 0
// CHECK: ft.random_bits %arg0 stream 1
