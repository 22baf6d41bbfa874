// RUN: ft-opt %s --ft-form-clusters --ft-lower-to-ftx --ftx-verify-schedule | FileCheck %s

// The column sums of what a layer gives to the one before are its last gradients and the first one of that: a bias. They are made together, in one pass; the
// bias waits apart until the flat gradient of its unit is there, which is not while that of the other is made.

module {
  ft.unit @b {elements = 1024 : i64, residency = #ft.residency<parameters = slice, gathered = released, gradients = slice, optimizer = slice>}
  ft.unit @a {elements = 8192 : i64, residency = #ft.residency<parameters = slice, gathered = released, gradients = slice, optimizer = slice>}
  ft.parameter @norm : tensor<64xf32> = #ft.init<constant, 1.0> {layer = "b", offset = 0 : i64, unit = @b}
  ft.parameter @bias : tensor<64xf32> = #ft.init<constant, 0.0> {layer = "a", offset = 0 : i64, unit = @a}
  ft.parameter @weight : tensor<64x64xf32> = #ft.init<normal, 0.02> {layer = "a", offset = 1024 : i64, unit = @a}

  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step(%x: tensor<128x64xf32> {ft.input = "x"}, %dy: tensor<128x64xf32> {ft.input = "dy"}) {
    // CHECK: "cluster" on compute ins({{.*}}) outs(%b.flat_gradient : tensor<64xf32>, %[[D:[^ ]*]] : tensor<128x64xf32>, %[[BIAS:[^ ]*]] : tensor<64xf32>)
    %scaled = ft.mul %dy, %x {layer = "b", phase = "backward"} : tensor<128x64xf32>
    %norm = ft.reduce "sum" %scaled over [0] {layer = "b", phase = "backward"} : tensor<128x64xf32> -> tensor<64xf32>
    %d = ft.add %scaled, %dy {layer = "b", phase = "backward"} : tensor<128x64xf32>
    %gb = ft.pack %norm at [@norm] {layer = "b", phase = "backward"} : (tensor<64xf32>) -> !ft.flat<@b, f32>
    // CHECK: ftx.start reduce_scatter
    %sb = ft.reduce_scatter %gb {layer = "b", phase = "backward"} : !ft.flat<@b, f32> -> !ft.slice<@b, f32>
    // CHECK-NOT: "cluster"
    %bias = ft.reduce "sum" %d over [0] {layer = "a", phase = "backward"} : tensor<128x64xf32> -> tensor<64xf32>
    // CHECK: "matmul" on compute ins({{.*}}) outs(%a.flat_gradient[4096] : tensor<64x64xf32>)
    %weight = ft.matmul %x, %d transpose_a {layer = "a", phase = "backward"} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
    // CHECK: "copy" on compute ins(%[[BIAS]] : tensor<64xf32>) outs(%a.flat_gradient : tensor<64xf32>)
    %ga = ft.pack %bias, %weight at [@bias, @weight] {layer = "a", phase = "backward"} : (tensor<64xf32>, tensor<64x64xf32>) -> !ft.flat<@a, f32>
    %sa = ft.reduce_scatter %ga {layer = "a", phase = "backward"} : !ft.flat<@a, f32> -> !ft.slice<@a, f32>
    return
  }

  // So does one whose cluster makes nothing of its own unit.
  // CHECK-LABEL: ftx.program @train_micro
  func.func @train_micro(%x: tensor<128x64xf32> {ft.input = "x"}, %dy: tensor<128x64xf32> {ft.input = "dy"}) {
    // CHECK: "cluster" on compute ins({{.*}}) outs(%[[D:[^ ]*]] : tensor<128x64xf32>, %[[BIAS:[^ ]*]] : tensor<64xf32>)
    %d = ft.add %x, %dy {layer = "b", phase = "backward"} : tensor<128x64xf32>
    // CHECK: "matmul" on compute ins(%[[D]]
    %last = ft.matmul %d, %x transpose_b {layer = "b", phase = "backward"} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x128xf32>
    // CHECK: %a.flat_gradient = ftx.buffer
    %bias = ft.reduce "sum" %d over [0] {layer = "a", phase = "backward"} : tensor<128x64xf32> -> tensor<64xf32>
    %weight = ft.matmul %x, %d transpose_a {layer = "a", phase = "backward"} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
    // CHECK: "copy" on compute ins(%[[BIAS]] : tensor<64xf32>) outs(%a.flat_gradient : tensor<64xf32>)
    %ga = ft.pack %bias, %weight at [@bias, @weight] {layer = "a", phase = "backward"} : (tensor<64xf32>, tensor<64x64xf32>) -> !ft.flat<@a, f32>
    %sa = ft.reduce_scatter %ga {layer = "a", phase = "backward"} : !ft.flat<@a, f32> -> !ft.slice<@a, f32>
    return
  }
}
