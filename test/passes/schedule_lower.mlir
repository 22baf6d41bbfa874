// RUN: ft-opt %s --split-input-file --ft-lower-to-ftx --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file --ft-lower-to-ftx | ft-opt --split-input-file | FileCheck %s

// A gathered unit: parameters are views of the gathered buffer, gradients are born in the flat gradient, the state is sliced.

module {
  ft.unit @h {elements = 2048 : i64, residency = #ft.residency<parameters = slice, gathered = never, gradients = slice, optimizer = slice>}
  ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "h", offset = 0 : i64, unit = @h}
  ft.parameter @b : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "h", no_decay, offset = 1024 : i64, unit = @h}
  // CHECK: %h.parameters = ftx.buffer "h.parameters" parameters unit_slice(@h, 4) persistent
  // CHECK-NEXT: ftx.state @h "parameters" %h.parameters
  // CHECK-NEXT: %h.gradients = ftx.buffer "h.gradients" gradients unit_slice(@h, 4) persistent
  // CHECK-NEXT: ftx.state @h "gradients" %h.gradients
  // CHECK-NEXT: %h.exp_avg = ftx.buffer "h.exp_avg" optimizer_state unit_slice(@h, 4) persistent
  // CHECK-NEXT: ftx.state @h "exp_avg" %h.exp_avg
  // CHECK-NEXT: %h.exp_avg_sq = ftx.buffer "h.exp_avg_sq" optimizer_state unit_slice(@h, 4) persistent
  // CHECK-NEXT: ftx.state @h "exp_avg_sq" %h.exp_avg_sq

  // CHECK-LABEL: ftx.program @init
  // CHECK: ftx.input "rng" %rng : tensor<3xi64>
  // Memory is zero from the start.
  // CHECK-NOT: "fill"
  // CHECK: "init_normal" on compute ins(%rng : tensor<3xi64>) outs(%h.parameters : whole f32) with {parameter = @w, value = 2.000000e-02 : f64}
  // CHECK: "init_constant" on compute ins(%rng : tensor<3xi64>) outs(%h.parameters : whole f32) with {parameter = @b, value = 5.000000e-01 : f64}
  func.func @init() {
    %rng = ft.input "rng" : tensor<3xi64>
    ft.init @w, %rng {phase = "init"} : tensor<3xi64>
    ft.init @b, %rng {phase = "init"} : tensor<3xi64>
    return
  }

  // CHECK-LABEL: ftx.program @train_step
  // CHECK-DAG: ftx.input "tokens" %tokens : tensor<2x4xi32>
  // CHECK-DAG: ftx.input "lr" %lr : tensor<f32>
  func.func @train_step(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
    %s = ft.shard @h : !ft.slice<@h, f32>
    // CHECK: %h.gathered = ftx.buffer "h.gathered" gathered unit_full(@h, 4)
    // CHECK-NEXT: %[[G:.*]] = ftx.start all_gather on gather after compute over shard @h from (%h.parameters : whole f32) to (%h.gathered : whole f32)
    // CHECK-NEXT: ftx.wait %[[G]] on compute
    %f = ft.gather %s {layer = "h", phase = "forward"} : !ft.slice<@h, f32> -> !ft.flat<@h, f32>
    %w = ft.view %f[@w] : !ft.flat<@h, f32> -> tensor<16x8xf32>
    %b = ft.view %f[@b] : !ft.flat<@h, f32> -> tensor<8xf32>
    // CHECK: "embedding" on compute ins(%tokens : tensor<2x4xi32>, %h.gathered : tensor<16x8xf32>) outs(%h.embedding : tensor<2x4x8xf32>)
    %x = ft.embedding %tokens, %w {layer = "h", phase = "forward"} : (tensor<2x4xi32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    // The sum takes over the buffer of the operand that dies.
    // CHECK: "add" on compute ins(%h.embedding : tensor<2x4x8xf32>, %h.gathered[4096] : tensor<8xf32>) outs(%h.embedding : tensor<2x4x8xf32>)
    %y = ft.add %x, %b {layer = "h", phase = "forward"} : tensor<2x4x8xf32>, tensor<8xf32>
    // The loss lies in its port, the gradients in the flat gradient, whose gaps are zeroed first.
    // CHECK: %h.flat_gradient = ftx.buffer "h.flat_gradient" staging unit_full(@h, 4)
    // CHECK-NEXT: "zero_padding" on compute ins() outs(%h.flat_gradient : whole f32) {
    // CHECK: "linear_cross_entropy_loss_grad" on compute ins(%h.embedding : tensor<2x4x8xf32>, %h.gathered : tensor<16x8xf32>, %targets : tensor<2x4xi32>, none, none)
    // CHECK-SAME: outs(%loss : tensor<f32>, %{{.*}} : tensor<2x4x8xf32>, %h.flat_gradient : tensor<16x8xf32>) workspace(%{{.*}}) with {dloss = 1.000000e+00 : f64}
    %loss, %dy, %dw = ft.linear_cross_entropy_loss_grad %y, %w, %targets dloss 1.0 {layer = "h", phase = "forward"} : (tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4x8xf32>, tensor<16x8xf32>)
    // CHECK: ftx.release %h.gathered
    ft.release %f {layer = "h", phase = "forward"} : !ft.flat<@h, f32>
    // CHECK: "reduce" on compute ins(%{{.*}} : tensor<2x4x8xf32>) outs(%h.flat_gradient[4096] : tensor<8xf32>)
    %db = ft.reduce "sum" %dy over [0, 1] {layer = "h", phase = "backward"} : tensor<2x4x8xf32> -> tensor<8xf32>
    // An accumulated gradient stays where it is: no copy.
    // CHECK-NOT: "copy"
    // CHECK: "embedding_grad" on compute ins(%tokens : tensor<2x4xi32>, %{{.*}} : tensor<2x4x8xf32>, %h.flat_gradient : tensor<16x8xf32>) outs(%h.flat_gradient : tensor<16x8xf32>)
    %dw2 = ft.embedding_grad %tokens, %dy into %dw {layer = "h", phase = "backward"} : (tensor<2x4xi32>, tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %g = ft.pack %dw2, %db at [@w, @b] {layer = "h", phase = "backward"} : (tensor<16x8xf32>, tensor<8xf32>) -> !ft.flat<@h, f32>
    // CHECK: %[[R:.*]] = ftx.start reduce_scatter on reduce after compute over shard @h from (%h.flat_gradient : whole f32) to (%h.gradients : whole f32)
    // CHECK-NEXT: ftx.wait %[[R]] on compute
    %r = ft.reduce_scatter %g {layer = "h", phase = "backward"} : !ft.flat<@h, f32> -> !ft.slice<@h, f32>
    // CHECK: "sum_squares" on compute ins(%h.gradients : whole f32, none, none) outs(%sum_squares : tensor<21xi64>)
    %q = ft.sum_squares %r {phase = "optimizer"} : (!ft.slice<@h, f32>) -> tensor<21xi64>
    // CHECK: "clip_coefficient" on compute ins(%sum_squares : tensor<21xi64>, none, none, none) outs(%grad_norm : tensor<f32>, %clip_coefficient : tensor<f32>)
    %n, %c = ft.clip_coefficient %q {max_norm = 1.0 : f64, phase = "optimizer"} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    // CHECK: "update" on compute ins(%h.gradients : whole f32, %update_scalars : tensor<2x1xf32>) outs(%h.parameters : whole f32, %h.exp_avg : whole f32, %h.exp_avg_sq : whole f32)
    %scalars = ft.update_scalars %c, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64, phase = "optimizer"} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @h by @adamw(%r, %scalars) states ["exp_avg", "exp_avg_sq"] {phase = "optimizer"} : !ft.slice<@h, f32>, tensor<2x1xf32>
    // CHECK: ftx.output "loss" %loss : tensor<f32>
    // CHECK-NEXT: ftx.output "grad_norm" %grad_norm : tensor<f32>
    return %loss, %n : tensor<f32>, tensor<f32>
  }
  func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  }
}

// -----

// Nothing is sharded: parameters are views of what lies at rest, the flat gradient is the gradient at rest.

module {
  ft.unit @h {elements = 1024 : i64}
  ft.parameter @b : tensor<8xf32> = #ft.init<constant, 0.5> {offset = 0 : i64, unit = @h}
  // CHECK: %h.parameters = ftx.buffer "h.parameters" parameters unit_full(@h, 4) persistent
  // CHECK: %h.gradients = ftx.buffer "h.gradients" gradients unit_full(@h, 4) persistent
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<f32> {
    %s = ft.shard @h : !ft.slice<@h, f32>
    %b = ft.view %s[@b] : !ft.slice<@h, f32> -> tensor<8xf32>
    // A parameter is not overwritten, though it dies here and the kernel could. The result is a gradient in place.
    // CHECK: "zero_padding" on compute ins() outs(%h.gradients : whole f32)
    // CHECK: "scale" on compute ins(%h.parameters : tensor<8xf32>) outs(%h.gradients : tensor<8xf32>)
    %d = ft.scale %b, 2.0 : tensor<8xf32>
    %g = ft.pack %d at [@b] : (tensor<8xf32>) -> !ft.flat<@h, f32>
    // CHECK: ftx.start all_reduce on reduce after compute over replica @h from (%h.gradients : whole f32) to ()
    %r = ft.all_reduce %g over replica : !ft.flat<@h, f32>
    // A sum goes round through one accumulator.
    // CHECK: "sum_squares" on compute ins(%h.gradients : whole f32, none, none) outs(%sum_squares : tensor<21xi64>)
    // CHECK: "sum_squares" on compute ins(%h.gradients : whole f32, %sum_squares : tensor<21xi64>, none) outs(%sum_squares : tensor<21xi64>)
    %q = ft.sum_squares %r : (!ft.flat<@h, f32>) -> tensor<21xi64>
    %q2 = ft.sum_squares %r into %q : (!ft.flat<@h, f32>, tensor<21xi64>) -> tensor<21xi64>
    // CHECK: outs(%{{.*}} : tensor<f32>, %loss : tensor<f32>)
    %n, %c = ft.clip_coefficient %q2 {max_norm = 1.0 : f64} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    %scalars = ft.update_scalars %n, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @h by @adamw(%r, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@h, f32>, tensor<2x1xf32>
    return %c : tensor<f32>
  }
  func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  }
}

// -----

// A reshape is an alias of what it reads, by which it is read and written in its place.

module {
  ft.unit @h {elements = 2048 : i64, residency = #ft.residency<parameters = slice, gathered = never, gradients = slice, optimizer = slice>}
  ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "h", offset = 0 : i64, unit = @h}

  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
    %s = ft.shard @h : !ft.slice<@h, f32>
    %f = ft.gather %s {layer = "h", phase = "forward"} : !ft.slice<@h, f32> -> !ft.flat<@h, f32>
    %w = ft.view %f[@w] : !ft.flat<@h, f32> -> tensor<16x8xf32>
    // Of a parameter as long as its unit is there; where it is released before, the copy stays.
    // CHECK: "embedding" on compute ins(%tokens : tensor<2x4xi32>, %h.gathered : tensor<16x8xf32>) outs(%h.embedding : tensor<2x4x8xf32>)
    // CHECK-NOT: "reshape"
    // CHECK: "scale" on compute ins(%h.gathered : tensor<128xf32>) outs(%[[SCALED:.*]] : tensor<128xf32>)
    // CHECK: "reshape" on compute ins(%h.gathered : tensor<16x8xf32>) outs(%[[KEPT:.*]] : tensor<8x16xf32>)
    // CHECK-NOT: "reshape"
    %x = ft.embedding %tokens, %w {layer = "h", phase = "forward"} : (tensor<2x4xi32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %w1 = ft.reshape %w {layer = "h", phase = "forward"} : tensor<16x8xf32> -> tensor<16x4x2xf32>
    %w2 = ft.reshape %w1 {layer = "h", phase = "forward"} : tensor<16x4x2xf32> -> tensor<128xf32>
    %scaled = ft.scale %w2, 2.0 {layer = "h", phase = "forward"} : tensor<128xf32>
    %kept = ft.reshape %w {layer = "h", phase = "forward"} : tensor<16x8xf32> -> tensor<8x16xf32>
    // What an alias reads later is not overwritten; when neither is read any more, it is.
    // CHECK: "scale" on compute ins(%h.embedding : tensor<8x8xf32>) outs(%[[Y:.*]] : tensor<8x8xf32>)
    // CHECK: "add" on compute ins(%h.embedding : tensor<2x4x8xf32>, %[[Y]] : tensor<2x4x8xf32>) outs(%h.embedding : tensor<2x4x8xf32>)
    %rows = ft.reshape %x {layer = "h", phase = "forward"} : tensor<2x4x8xf32> -> tensor<8x8xf32>
    %y = ft.scale %rows, 2.0 {layer = "h", phase = "forward"} : tensor<8x8xf32>
    %y3 = ft.reshape %y {layer = "h", phase = "forward"} : tensor<8x8xf32> -> tensor<2x4x8xf32>
    %z = ft.add %x, %y3 {layer = "h", phase = "forward"} : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    %loss, %dy, %dw = ft.linear_cross_entropy_loss_grad %z, %w, %targets dloss 1.0 {layer = "h", phase = "forward"} : (tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4x8xf32>, tensor<16x8xf32>)
    ft.release %f {layer = "h", phase = "forward"} : !ft.flat<@h, f32>
    // A gradient is born in the flat gradient through its alias.
    // CHECK: "matmul" on compute ins(%[[KEPT]] : tensor<8x16xf32>, %[[KEPT]] : tensor<8x16xf32>, none, none) outs(%[[SQUARE:.*]] : tensor<16x16xf32>)
    // CHECK: "scale" on compute ins(%{{.*}} : tensor<128xf32>) outs(%h.flat_gradient : tensor<128xf32>)
    // CHECK-NOT: "copy"
    // CHECK: ftx.start reduce_scatter
    %square = ft.matmul %kept, %kept transpose_a {layer = "h", phase = "backward"} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %flat_dw = ft.reshape %dw {layer = "h", phase = "backward"} : tensor<16x8xf32> -> tensor<128xf32>
    %grad = ft.scale %flat_dw, 3.0 {layer = "h", phase = "backward"} : tensor<128xf32>
    %grad2 = ft.reshape %grad {layer = "h", phase = "backward"} : tensor<128xf32> -> tensor<16x8xf32>
    %flat = ft.pack %grad2 at [@w] {layer = "h", phase = "backward"} : (tensor<16x8xf32>) -> !ft.flat<@h, f32>
    %g = ft.reduce_scatter %flat {layer = "h", phase = "backward"} : !ft.flat<@h, f32> -> !ft.slice<@h, f32>
    // CHECK: ftx.output "loss" %loss : tensor<f32>
    return %loss, %loss : tensor<f32>, tensor<f32>
  }
}

// -----

// An op that reads a value and an alias of it overwrites neither; two aliases of one value are returned in a port each.

module {
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step(%x: tensor<1xf32> {ft.input = "x"}) -> (tensor<f32>, tensor<f32>) {
    // CHECK: "scale" on compute ins(%x : tensor<1xf32>) outs(%[[A:.*]] : tensor<1xf32>)
    // CHECK: "add" on compute ins(%[[A]] : tensor<1xf32>, %[[A]] : tensor<1xf32>) outs(%[[SUM:.*]] : tensor<1xf32>)
    // CHECK: "copy" on compute ins(%[[SUM]] : tensor<f32>) outs(%loss : tensor<f32>)
    // CHECK: "copy" on compute ins(%[[SUM]] : tensor<f32>) outs(%grad_norm : tensor<f32>)
    %a = ft.scale %x, 2.0 : tensor<1xf32>
    %scalar = ft.reshape %a : tensor<1xf32> -> tensor<f32>
    %b = ft.reshape %scalar : tensor<f32> -> tensor<1xf32>
    %sum = ft.add %a, %b : tensor<1xf32>, tensor<1xf32>
    %loss = ft.reshape %sum : tensor<1xf32> -> tensor<f32>
    %again = ft.reshape %sum : tensor<1xf32> -> tensor<f32>
    return %loss, %again : tensor<f32>, tensor<f32>
  }
}

// -----

// A sum over micro-steps is added in the place of the last addend, unless that is read later, by an alias or not.

module {
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step(%x: tensor<2x4xf32> {ft.input = "x"}) -> (tensor<f32>, tensor<f32>) {
    // CHECK: "scale" on compute ins(%{{.*}} : tensor<f32>) outs(%[[L:.*]] : tensor<f32>)
    // CHECK: "accumulated" on compute ins(%[[L]] : tensor<f32>, %[[SUM:.*]] : tensor<f32>) outs(%[[ADDED:.*]] : tensor<f32>, %[[SUM]] : tensor<f32>)
    // CHECK: "scale" on compute ins(%[[ADDED]] : tensor<f32>) outs(%loss : tensor<f32>)
    // CHECK: "scale" on compute ins(%[[L]] : tensor<f32>) outs(%grad_norm : tensor<f32>)
    %l1 = ft.reduce "sum" %x over [0, 1] : tensor<2x4xf32> -> tensor<f32>
    %l2 = ft.scale %l1, 2.0 : tensor<f32>
    %r = ft.reshape %l2 : tensor<f32> -> tensor<1xf32>
    %r2 = ft.reshape %r : tensor<1xf32> -> tensor<f32>
    %a = ft.accumulated %r2 from "loss" : tensor<f32>
    %m = ft.scale %a, 0.5 : tensor<f32>
    %q = ft.scale %l2, 3.0 : tensor<f32>
    return %m, %q : tensor<f32>, tensor<f32>
  }
}

// -----

// A parameter at rest is written by the optimizer: what is read after that is a copy.

module {
  ft.unit @h {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole>}
  ft.parameter @w : tensor<f32> = #ft.init<normal, 0.02> {layer = "h", offset = 0 : i64, unit = @h}
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step(%g: tensor<f32> {ft.input = "x"}, %s: tensor<2x4xf32> {ft.input = "s"}) -> (tensor<f32>, tensor<f32>) {
    // CHECK-NOT: "reshape"
    // CHECK: "scale" on compute ins(%h.parameters : tensor<1xf32>)
    // CHECK: "reshape" on compute ins(%h.parameters : tensor<f32>) outs(%[[OLD:.*]] : tensor<1xf32>)
    // CHECK: "update" on compute
    // CHECK: "scale" on compute ins(%[[OLD]] : tensor<1xf32>)
    %rest = ft.shard @h : !ft.slice<@h, f32>
    %w = ft.view %rest[@w] : !ft.slice<@h, f32> -> tensor<f32>
    %r = ft.reshape %w : tensor<f32> -> tensor<1xf32>
    %loss1 = ft.scale %r, 2.0 : tensor<1xf32>
    %loss = ft.reshape %loss1 : tensor<1xf32> -> tensor<f32>
    %old = ft.reshape %w : tensor<f32> -> tensor<1xf32>
    %flat = ft.pack %g at [@w] : (tensor<f32>) -> !ft.flat<@h, f32>
    ft.update @h by @step(%flat, %s) states [] : !ft.flat<@h, f32>, tensor<2x4xf32>
    %norm1 = ft.scale %old, 2.0 : tensor<1xf32>
    %norm = ft.reshape %norm1 : tensor<1xf32> -> tensor<f32>
    return %loss, %norm : tensor<f32>, tensor<f32>
  }
  func.func private @step(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
    return %p : tensor<1024xf32>
  }
}
