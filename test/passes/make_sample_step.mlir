// RUN: ft-opt %s --split-input-file --ft-make-sample-step | FileCheck %s

// Of the last product only the row of the position is computed, of each sequence; targets are gone, and dropout.

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// CHECK-LABEL: func.func @forward
// CHECK:         ft.dropout
// CHECK:         ft.cross_entropy
// CHECK-LABEL: func.func @sample_step
// CHECK-SAME:    (%[[TOKENS:.*]]: tensor<2x3xi32>) -> tensor<2x16xf32> {
// CHECK-NEXT:    %w = ft.get @w {phase = "forward"}
// CHECK-NEXT:    %[[X:.*]] = ft.embedding %[[TOKENS]], %w {layer = "head", phase = "forward"}
// CHECK-NEXT:    %[[AT:.*]] = ft.input "sample_position" {layer = "head", phase = "forward"} : tensor<i32>
// CHECK-NEXT:    %[[SEQUENCE:.*]] = ft.iota {layer = "head", phase = "forward"} : tensor<2xi32>
// CHECK-NEXT:    %[[FIRST:.*]] = ft.scale %[[SEQUENCE]], 3.0
// CHECK-NEXT:    %[[SAME:.*]] = ft.broadcast %[[AT]]
// CHECK-NEXT:    %[[ROWS:.*]] = ft.add %[[FIRST]], %[[SAME]]
// CHECK-NEXT:    %[[TABLE:.*]] = ft.reshape %[[X]] {{.*}} : tensor<2x3x8xf32> -> tensor<6x8xf32>
// CHECK-NEXT:    %[[ROW:.*]] = ft.embedding %[[ROWS]], %[[TABLE]] {{.*}} -> tensor<2x8xf32>
// CHECK-NEXT:    %[[PRODUCT:.*]] = ft.matmul %[[ROW]], %w transpose_b {{.*}} -> tensor<2x16xf32>
// CHECK-NEXT:    %[[CAPPED:.*]] = ft.soft_cap %[[PRODUCT]], 30.0 {{.*}} : tensor<2x16xf32>
// CHECK-NEXT:    return %[[CAPPED]] : tensor<2x16xf32>
func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  %rng = ft.input "rng" : tensor<3xi64>
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %y = ft.dropout %x, %rng rate 0.1 stream 2 {layer = "head"} : tensor<2x3x8xf32>, tensor<3xi64>
  %l = ft.matmul %y, %w transpose_b {layer = "head"} : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %z = ft.soft_cap %l, 30.0 {layer = "head"} : tensor<2x3x16xf32>
  %loss = ft.cross_entropy %z, %targets {layer = "head"} : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A loss in one op with its head, and rows that lie behind one another.

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// CHECK-LABEL: func.func @sample_step
// CHECK:         %[[ROW:.*]] = ft.embedding %{{.*}}, %{{.*}} {layer = "head", phase = "forward"} : (tensor<2xi32>, tensor<6x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:    %[[LOGITS:.*]] = ft.matmul %[[ROW]], %w transpose_b
// CHECK-NEXT:    return %[[LOGITS]] : tensor<2x16xf32>
func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %rows = ft.reshape %x {layer = "head"} : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %ids = ft.reshape %targets {layer = "head"} : tensor<2x3xi32> -> tensor<6xi32>
  %loss = ft.linear_cross_entropy %rows, %w, %ids {layer = "head"} : (tensor<6x8xf32>, tensor<16x8xf32>, tensor<6xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Labels are shifted by the model, as those of transformers; positions are known; an auxiliary loss is not looked at.

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// CHECK-LABEL: func.func @sample_step
// CHECK-SAME:    (%{{.*}}: tensor<2x3xi64> {ft.input = "input_ids"}, %{{.*}}: tensor<2x3xi32> {ft.input = "positions"}) -> tensor<2x16xf32>
// CHECK-NOT:     ft.scale {{.*}}0.01
// CHECK:         return
func.func @forward(%tokens: tensor<2x3xi64> {ft.input = "input_ids"}, %labels: tensor<2x3xi32> {ft.input = "labels"},
                   %positions: tensor<2x3xi32> {ft.input = "positions"}) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %rows = ft.convert %tokens {layer = "head"} : tensor<2x3xi64> -> tensor<2x3xi32>
  %x = ft.embedding %rows, %w {layer = "head"} : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %p = ft.embedding %positions, %w {layer = "head"} : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>
  %y = ft.add %x, %p {layer = "head"} : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  %l = ft.matmul %y, %w transpose_b {layer = "head"} : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %wide = ft.pad %labels at [0, 0] {layer = "head"} : tensor<2x3xi32> -> tensor<2x4xi32>
  %iota = ft.iota {layer = "head"} : tensor<4xi32>
  %end = ft.fill 3.0 {layer = "head"} : tensor<f32>
  %three = ft.convert %end {layer = "head"} : tensor<f32> -> tensor<i32>
  %inside = ft.lt %iota, %three {layer = "head"} : tensor<4xi32>, tensor<i32>
  %mask = ft.broadcast %inside {layer = "head"} : tensor<4xi1> -> tensor<2x4xi1>
  %out = ft.fill -100.0 {layer = "head"} : tensor<f32>
  %ignored = ft.convert %out {layer = "head"} : tensor<f32> -> tensor<i32>
  %padded = ft.select %mask, %wide, %ignored {layer = "head"} : tensor<2x4xi1>, tensor<2x4xi32>, tensor<i32>
  %next = ft.slice %padded at [0, 1] {layer = "head"} : tensor<2x4xi32> -> tensor<2x3xi32>
  %loss = ft.cross_entropy %l, %next {layer = "head"} : (tensor<2x3x16xf32>, tensor<2x3xi32>) -> tensor<f32>
  %square = ft.square %loss {layer = "head"} : tensor<f32>
  %aux = ft.scale %square, 0.01 {layer = "head"} : tensor<f32>
  %all = ft.add %loss, %aux {layer = "head"} : tensor<f32>, tensor<f32>
  return %all : tensor<f32>
}
