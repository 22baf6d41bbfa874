// RUN: ft-opt %s --split-input-file --ft-fuse-residual-norm | FileCheck %s

// Where the norm stood, of its layer: the sum's other readers come later. What recomputation chose for one of them is not said of both.
// CHECK-LABEL: @layer_norm
// CHECK-SAME:    %[[A:[^:]+]]: tensor<2x3x8xf32>, %[[B:[^:]+]]: tensor<2x3x8xf32>, %[[W:[^:]+]]: tensor<8xf32>, %[[BIAS:[^:]+]]: tensor<8xf32>
func.func @layer_norm(%a: tensor<2x3x8xf32>, %b: tensor<2x3x8xf32>, %w: tensor<8xf32>, %bias: tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  // CHECK-NEXT: %[[SUM:.*]], %[[NORM:.*]] = ft.add_layer_norm %[[A]], %[[B]], %[[W]], %[[BIAS]] eps 1.0e-05 {layer = "h.1", phase = "forward"} : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>
  // CHECK-NEXT: %[[REST:.*]] = ft.add %[[SUM]], %[[NORM]]
  // CHECK-NEXT: return %[[REST]], %[[SUM]]
  %sum = ft.add %a, %b {layer = "h.0", phase = "forward", remat = "keep"} : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  %norm = ft.layer_norm %sum, %w, %bias eps 1.0e-5 {layer = "h.1", phase = "forward", remat = "recompute"} : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>
  %rest = ft.add %sum, %norm {layer = "h.1", phase = "forward"} : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  return %rest, %sum : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}

// -----

// In 16 bits, in an evaluation too, which has no phase; the second norm of a sum reads it.
// CHECK-LABEL: @rms_norm
// CHECK-SAME:    %[[A:[^:]+]]: tensor<3x8xbf16>, %[[B:[^:]+]]: tensor<3x8xbf16>, %[[W:[^:]+]]: tensor<8xbf16>
func.func @rms_norm(%a: tensor<3x8xbf16>, %b: tensor<3x8xbf16>, %w: tensor<8xbf16>) -> (tensor<3x8xbf16>, tensor<3x8xbf16>) {
  // CHECK-NEXT: %[[SUM:.*]], %[[FIRST:.*]] = ft.add_rms_norm %[[A]], %[[B]], %[[W]] eps 1.0e-06 : tensor<3x8xbf16>, tensor<8xbf16>
  // CHECK-NEXT: %[[SECOND:.*]] = ft.rms_norm %[[SUM]], %[[W]] eps 0.25
  // CHECK-NEXT: return %[[FIRST]], %[[SECOND]]
  %sum = ft.add %a, %b : tensor<3x8xbf16>, tensor<3x8xbf16>
  %first = ft.rms_norm %sum, %w eps 1.0e-6 : tensor<3x8xbf16>, tensor<8xbf16>
  %second = ft.rms_norm %sum, %w eps 0.25 : tensor<3x8xbf16>, tensor<8xbf16>
  return %first, %second : tensor<3x8xbf16>, tensor<3x8xbf16>
}

// -----

// The gather of the norm's parameters and the release of the layer before run no kernel.
ft.unit @h0 {elements = 1024 : i64}
ft.unit @h1 {elements = 1024 : i64}
ft.parameter @w : tensor<8xf32> = #ft.init<constant, 1.0> {offset = 0 : i64, unit = @h1}
// CHECK-LABEL: @between_layers
func.func @between_layers(%a: tensor<3x8xf32>, %b: tensor<3x8xf32>, %u0: !ft.flat<@h0, f32>, %s1: !ft.slice<@h1, f32>) -> tensor<3x8xf32> {
  // CHECK-NEXT: ft.release
  // CHECK-NEXT: ft.gather
  // CHECK-NEXT: %[[W:.*]] = ft.view
  // CHECK-NEXT: ft.add_rms_norm %{{.*}}, %{{.*}}, %[[W]]
  %sum = ft.add %a, %b {layer = "h.0"} : tensor<3x8xf32>, tensor<3x8xf32>
  ft.release %u0 : !ft.flat<@h0, f32>
  %u1 = ft.gather %s1 {axis = "shard"} : !ft.slice<@h1, f32> -> !ft.flat<@h1, f32>
  %w = ft.view %u1[@w] : !ft.flat<@h1, f32> -> tensor<8xf32>
  %norm = ft.rms_norm %sum, %w eps 1.0e-5 {layer = "h.1"} : tensor<3x8xf32>, tensor<8xf32>
  return %norm : tensor<3x8xf32>
}

// -----

// A term that is a parameter may be gone where the norm stands.
ft.unit @h {elements = 1024 : i64}
ft.parameter @p : tensor<3x8xf32> = #ft.init<constant, 1.0> {offset = 0 : i64, unit = @h}
// CHECK-LABEL: @parameter
func.func @parameter(%a: tensor<3x8xf32>, %u: !ft.flat<@h, f32>, %w: tensor<8xf32>) -> tensor<3x8xf32> {
  // CHECK: ft.add %
  // CHECK: ft.release
  // CHECK: ft.rms_norm
  %p = ft.view %u[@p] : !ft.flat<@h, f32> -> tensor<3x8xf32>
  %sum = ft.add %a, %p : tensor<3x8xf32>, tensor<3x8xf32>
  ft.release %u : !ft.flat<@h, f32>
  %norm = ft.rms_norm %sum, %w eps 1.0e-5 : tensor<3x8xf32>, tensor<8xf32>
  return %norm : tensor<3x8xf32>
}

// -----

// Somebody reads the sum before the norm does.
// CHECK-LABEL: @read_between
func.func @read_between(%a: tensor<3x8xf32>, %b: tensor<3x8xf32>, %w: tensor<8xf32>) -> (tensor<3x8xf32>, !ft.host<tensor<3x8xf32>>) {
  // CHECK: ft.add %
  // CHECK: ft.offload
  // CHECK: ft.rms_norm
  %sum = ft.add %a, %b : tensor<3x8xf32>, tensor<3x8xf32>
  %there = ft.offload %sum : tensor<3x8xf32> -> !ft.host<tensor<3x8xf32>>
  %norm = ft.rms_norm %sum, %w eps 1.0e-5 : tensor<3x8xf32>, tensor<8xf32>
  return %norm, %there : tensor<3x8xf32>, !ft.host<tensor<3x8xf32>>
}

// -----

// A kernel runs before the norm does: %a and %b would live through it.
// CHECK-LABEL: @kernel_between
func.func @kernel_between(%a: tensor<3x8xf32>, %b: tensor<3x8xf32>, %c: tensor<8xf32>) -> tensor<3x8xf32> {
  // CHECK: ft.add %
  // CHECK: ft.scale
  // CHECK: ft.rms_norm
  %sum = ft.add %a, %b : tensor<3x8xf32>, tensor<3x8xf32>
  %w = ft.scale %c, 2.0 : tensor<8xf32>
  %norm = ft.rms_norm %sum, %w eps 1.0e-5 : tensor<3x8xf32>, tensor<8xf32>
  return %norm : tensor<3x8xf32>
}

// -----

// CHECK-LABEL: @repeated
func.func @repeated(%a: tensor<2x3x8xf32>, %b: tensor<3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  // CHECK: ft.add %
  // CHECK: ft.rms_norm
  %sum = ft.add %a, %b : tensor<2x3x8xf32>, tensor<3x8xf32>
  %norm = ft.rms_norm %sum, %w eps 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>
  return %norm : tensor<2x3x8xf32>
}

// -----

// The sum is kept and the norm is computed again; both are computed again.
// CHECK-LABEL: @phases
func.func @phases(%a: tensor<3x8xf32>, %b: tensor<3x8xf32>, %w: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  // CHECK: ft.add %{{.*}} {phase = "forward"}
  // CHECK: ft.rms_norm %{{.*}} {phase = "recompute"}
  // CHECK: ft.add_rms_norm %{{.*}} {phase = "recompute"}
  // CHECK-NOT: ft.rms_norm
  %kept = ft.add %a, %b {phase = "forward"} : tensor<3x8xf32>, tensor<3x8xf32>
  %0 = ft.rms_norm %kept, %w eps 1.0e-5 {phase = "recompute"} : tensor<3x8xf32>, tensor<8xf32>
  %again = ft.add %a, %b {phase = "recompute"} : tensor<3x8xf32>, tensor<3x8xf32>
  %1 = ft.rms_norm %again, %w eps 1.0e-5 {phase = "recompute"} : tensor<3x8xf32>, tensor<8xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}

// -----

// One row that is its own weight.
// CHECK-LABEL: @own_weight
func.func @own_weight(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: ft.add %
  // CHECK: ft.rms_norm
  %sum = ft.add %a, %b : tensor<8xf32>, tensor<8xf32>
  %norm = ft.rms_norm %sum, %sum eps 1.0e-5 : tensor<8xf32>, tensor<8xf32>
  return %norm : tensor<8xf32>
}
