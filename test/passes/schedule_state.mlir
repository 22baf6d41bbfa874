// RUN: ft-opt %s --split-input-file --ft-accumulate-in-place --ft-lower-to-ftx --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file --ft-accumulate-in-place --ft-lower-to-ftx | ft-opt --split-input-file | FileCheck %s

// How the residency of a unit decides about buffers, copies, casts and transfers.

// zero1 in bf16: working copy and gradients whole, master weights and moments slices. Gradients are scattered in place, the
// optimizer updates the own slices, which are then gathered in place.

module {
  ft.unit @h {compute = bf16, elements = 1024 : i64, reduce = bf16, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = slice>, working_copy}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "h", offset = 0 : i64, unit = @h}
  // CHECK: %h.parameters = ftx.buffer "h.parameters" parameters unit_full(@h, 2) persistent
  // CHECK: %h.master = ftx.buffer "h.master" optimizer_state unit_slice(@h, 4) persistent
  // CHECK: %h.gradients = ftx.buffer "h.gradients" gradients unit_full(@h, 2) persistent
  // CHECK: %h.exp_avg = ftx.buffer "h.exp_avg" optimizer_state unit_slice(@h, 4) persistent

  // CHECK-LABEL: ftx.program @init
  // CHECK: "init_constant" on compute ins(%rng : tensor<3xi64>) outs(%h.master : whole f32)
  // CHECK-NEXT: "cast" on compute ins(%h.master : whole f32) outs(%h.parameters : own bf16)
  // CHECK-NEXT: ftx.start all_gather on gather after compute over shard @h from (%h.parameters : own bf16) to (%h.parameters : whole bf16)
  func.func @init() {
    %rng = ft.input "rng" : tensor<3xi64>
    ft.init @w, %rng {phase = "init"} : tensor<3xi64>
    return
  }

  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<f32> {
    %s = ft.shard @h : !ft.slice<@h, bf16>
    %w = ft.view %s[@w] : !ft.slice<@h, bf16> -> tensor<8xbf16>
    // CHECK: "scale" on compute ins(%h.parameters : tensor<8xbf16>) outs(%h.gradients : tensor<8xbf16>)
    %d = ft.scale %w, 2.0 : tensor<8xbf16>
    %g = ft.pack %d at [@w] : (tensor<8xbf16>) -> !ft.flat<@h, bf16>
    // CHECK: ftx.start reduce_scatter on reduce after compute over shard @h from (%h.gradients : whole bf16) to (%h.gradients : own bf16)
    %r = ft.reduce_scatter %g : !ft.flat<@h, bf16> -> !ft.slice<@h, bf16>
    %one = ft.fill 1.0 : tensor<f32>
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    // CHECK: "update" on compute ins(%h.gradients : own bf16, {{.*}}) outs(%h.master : whole f32, %h.exp_avg : whole f32, %h.exp_avg_sq : whole f32, %h.parameters : own bf16)
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @h by @adamw(%r, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@h, bf16>, tensor<2x1xf32>
    // CHECK-NEXT: %[[R:.*]] = ftx.start all_gather on gather after compute over shard @h from (%h.parameters : own bf16) to (%h.parameters : whole bf16)
    // CHECK-NEXT: ftx.wait %[[R]] on compute
    ft.refresh @h {phase = "optimizer"}
    return %one : tensor<f32>
  }
  func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  }
}

// -----

// The same without masters: the optimizer reads and writes its part of the bf16 weights, and draws what it rounds with.

module {
  ft.unit @h {compute = bf16, elements = 1024 : i64, master = bf16, reduce = bf16, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = slice>}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "h", offset = 0 : i64, unit = @h}
  // CHECK: %h.parameters = ftx.buffer "h.parameters" parameters unit_full(@h, 2) persistent
  // CHECK-NOT: h.master
  // CHECK: %h.exp_avg = ftx.buffer "h.exp_avg" optimizer_state unit_slice(@h, 4) persistent

  // CHECK-LABEL: ftx.program @init
  // CHECK: "init_constant" on compute ins(%rng : tensor<3xi64>) outs(%h.parameters : whole bf16)
  // CHECK-NOT: "cast"
  // CHECK-NOT: all_gather
  func.func @init() {
    %rng = ft.input "rng" : tensor<3xi64>
    ft.init @w, %rng {phase = "init"} : tensor<3xi64>
    return
  }

  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<f32> {
    %s = ft.shard @h : !ft.slice<@h, bf16>
    %w = ft.view %s[@w] : !ft.slice<@h, bf16> -> tensor<8xbf16>
    %d = ft.scale %w, 2.0 : tensor<8xbf16>
    %g = ft.pack %d at [@w] : (tensor<8xbf16>) -> !ft.flat<@h, bf16>
    %r = ft.reduce_scatter %g : !ft.flat<@h, bf16> -> !ft.slice<@h, bf16>
    %one = ft.fill 1.0 : tensor<f32>
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    %rng = ft.input "rng" : tensor<3xi64>
    // CHECK: "update" on compute ins(%h.gradients : own bf16, {{.*}}, %rng : tensor<3xi64>, %step : tensor<i64>) outs(%h.parameters : own bf16, %h.exp_avg : whole f32, %h.exp_avg_sq : whole f32)
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @h by @adamw(%r, %scalars, %rng, %t) states ["exp_avg", "exp_avg_sq"] : !ft.slice<@h, bf16>, tensor<2x1xf32>, tensor<3xi64>, tensor<i64>
    // CHECK-NEXT: ftx.start all_gather on gather after compute over shard @h from (%h.parameters : own bf16) to (%h.parameters : whole bf16)
    ft.refresh @h {phase = "optimizer"}
    return %one : tensor<f32>
  }
  func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  }
}

// -----

// Only master weights at rest, in host memory, and the optimizer's state there too: what is gathered is fetched, cast into the
// own slice, gathered in place; state is fetched, updated and copied back.

module {
  ft.unit @h {compute = bf16, elements = 1024 : i64, reduce = bf16, residency = #ft.residency<parameters = slice, gathered = until_backward, gradients = slice, optimizer = slice, host = parameters|optimizer>}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "h", offset = 0 : i64, unit = @h}
  // CHECK-NOT: "h.parameters"
  // CHECK: %h.master = ftx.buffer "h.master" optimizer_state unit_slice(@h, 4) host persistent
  // CHECK: %h.gradients = ftx.buffer "h.gradients" gradients unit_slice(@h, 2) persistent
  // CHECK: %h.exp_avg = ftx.buffer "h.exp_avg" optimizer_state unit_slice(@h, 4) host persistent

  // CHECK-LABEL: ftx.program @init
  // CHECK: "fill" on compute ins() outs(%h.master.drawn : whole f32)
  // CHECK: "init_constant" on compute ins(%rng : tensor<3xi64>) outs(%h.master.drawn : whole f32)
  // CHECK-NEXT: ftx.start copy on d2h after compute from (%h.master.drawn : whole f32) to (%h.master : whole f32)
  func.func @init() {
    %rng = ft.input "rng" : tensor<3xi64>
    ft.init @w, %rng {phase = "init"} : tensor<3xi64>
    return
  }

  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<f32> {
    %s = ft.shard @h : !ft.slice<@h, f32>
    // CHECK: %h.master.fetched = ftx.buffer "h.master.fetched" staging unit_slice(@h, 4)
    // CHECK-NEXT: %[[C:.*]] = ftx.start copy on h2d after compute from (%h.master : whole f32) to (%h.master.fetched : whole f32)
    // CHECK-NEXT: ftx.wait %[[C]] on compute
    // CHECK-NEXT: %h.gathered = ftx.buffer "h.gathered" gathered unit_full(@h, 2)
    // CHECK-NEXT: "cast" on compute ins(%h.master.fetched : whole f32) outs(%h.gathered : own bf16)
    // CHECK-NEXT: ftx.start all_gather on gather after compute over shard @h from (%h.gathered : own bf16) to (%h.gathered : whole bf16)
    %f = ft.gather %s {layer = "h", phase = "forward"} : !ft.slice<@h, f32> -> !ft.flat<@h, bf16>
    %w = ft.view %f[@w] : !ft.flat<@h, bf16> -> tensor<8xbf16>
    // CHECK: "scale" on compute ins(%h.gathered : tensor<8xbf16>) outs(%h.flat_gradient : tensor<8xbf16>)
    %d = ft.scale %w, 2.0 : tensor<8xbf16>
    ft.release %f {layer = "h", phase = "backward"} : !ft.flat<@h, bf16>
    %g = ft.pack %d at [@w] : (tensor<8xbf16>) -> !ft.flat<@h, bf16>
    // Over two axes: a sum over the ranks of a node, then the mean over all.
    // CHECK: %[[S:.*]] = ftx.start reduce_scatter on reduce after compute over shard @h from (%h.flat_gradient : whole bf16) to (%h.gradients : whole bf16)
    // CHECK-NEXT: ftx.wait %[[S]] on compute
    // CHECK-NEXT: %[[A:.*]] = ftx.start all_reduce on replica after compute over replica @h from (%h.gradients : whole bf16) to ()
    // CHECK-NEXT: ftx.wait %[[A]] on compute
    %r = ft.reduce_scatter %g : !ft.flat<@h, bf16> -> !ft.slice<@h, bf16>
    %a = ft.all_reduce %r over replica : !ft.slice<@h, bf16>
    %one = ft.fill 1.0 : tensor<f32>
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    // CHECK: ftx.start copy on h2d after compute from (%h.master : whole f32) to (%[[M:.*]] : whole f32)
    // CHECK: ftx.start copy on h2d after compute from (%h.exp_avg : whole f32) to (%h.exp_avg.fetched : whole f32)
    // CHECK: ftx.start copy on h2d after compute from (%h.exp_avg_sq : whole f32) to (%h.exp_avg_sq.fetched : whole f32)
    // CHECK: "update" on compute ins(%h.gradients : whole bf16, {{.*}}) outs(%[[M]] : whole f32, %h.exp_avg.fetched : whole f32, %h.exp_avg_sq.fetched : whole f32)
    // CHECK-NEXT: ftx.start copy on d2h after compute from (%[[M]] : whole f32) to (%h.master : whole f32)
    // CHECK: ftx.start copy on d2h after compute from (%h.exp_avg.fetched : whole f32) to (%h.exp_avg : whole f32)
    // CHECK: ftx.start copy on d2h after compute from (%h.exp_avg_sq.fetched : whole f32) to (%h.exp_avg_sq : whole f32)
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64, phase = "optimizer"} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @h by @adamw(%a, %scalars) states ["exp_avg", "exp_avg_sq"] {phase = "optimizer"} : !ft.slice<@h, bf16>, tensor<2x1xf32>
    return %one : tensor<f32>
  }
  func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  }
}

// -----

// Sums over micro-steps lie beside the gradients; the last micro-step takes them and leaves zeros. An activation waits in host memory.

module {
  ft.unit @h {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole>}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "h", offset = 0 : i64, unit = @h}
  // CHECK: %h.accumulated = ftx.buffer "h.accumulated" gradients unit_full(@h, 4) persistent
  // CHECK: ftx.state @h "accumulated" %h.accumulated
  // CHECK: %loss.accumulated = ftx.buffer "loss.accumulated" io constant(4) persistent

  // CHECK-LABEL: ftx.program @train_micro
  func.func @train_micro() {
    %d = ft.fill 1.0 : tensor<8xf32>
    // CHECK: "fill" on compute ins() outs(%[[D:.*]] : tensor<8xf32>)
    // CHECK: "add" on compute ins(%[[D]] : tensor<8xf32>, %h.accumulated : tensor<8xf32>) outs(%h.accumulated : tensor<8xf32>)
    %g = ft.pack %d at [@w] : (tensor<8xf32>) -> !ft.flat<@h, f32>
    // CHECK-NOT: "accumulate"
    ft.accumulate %g into "h" : !ft.flat<@h, f32>
    %l = ft.fill 2.0 : tensor<f32>
    // CHECK: "accumulate" on compute ins(%{{.*}} : tensor<f32>, %loss.accumulated : tensor<f32>) outs(%loss.accumulated : tensor<f32>)
    ft.accumulate %l into "loss" : tensor<f32>
    return
  }

  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<f32> {
    // CHECK: "fill" on compute ins() outs(%h.fill : tensor<8xf32>) with {value = 3.0
    %x = ft.fill 3.0 {layer = "h", phase = "forward"} : tensor<8xf32>
    // CHECK: %h.fill.offloaded = ftx.buffer "h.fill.offloaded" activations constant(32) host
    // CHECK: ftx.start copy on d2h after compute from (%h.fill : tensor<8xf32>) to (%h.fill.offloaded : tensor<8xf32>)
    %there = ft.offload %x {layer = "h", phase = "forward"} : tensor<8xf32> -> !ft.host<tensor<8xf32>>
    // CHECK: ftx.start copy on h2d after compute from (%h.fill.offloaded : tensor<8xf32>) to (%[[BACK:.*]] : tensor<8xf32>)
    %back = ft.reload %there {layer = "h", phase = "backward"} : !ft.host<tensor<8xf32>> -> tensor<8xf32>
    // CHECK: "scale" on compute ins(%[[BACK]] : tensor<8xf32>) outs(%[[DX:.*]] : tensor<8xf32>)
    // CHECK: "add" on compute ins(%[[DX]] : tensor<8xf32>, %h.accumulated : tensor<8xf32>) outs(%h.accumulated : tensor<8xf32>)
    %d = ft.scale %back, 2.0 : tensor<8xf32>
    %g = ft.pack %d at [@w] : (tensor<8xf32>) -> !ft.flat<@h, f32>
    // CHECK: "accumulated" on compute ins(none, %h.accumulated : whole f32) outs(%h.gradients : whole f32, %h.accumulated : whole f32)
    %sum = ft.accumulated %g from "h" : !ft.flat<@h, f32>
    // CHECK: ftx.start all_reduce {{.*}} @h from (%h.gradients : whole f32) to ()
    %r = ft.all_reduce %sum over replica : !ft.flat<@h, f32>
    %l = ft.fill 2.0 : tensor<f32>
    // CHECK: "accumulated" on compute ins(%[[L:.*]] : tensor<f32>, %loss.accumulated : tensor<f32>) outs(%[[L]] : tensor<f32>, %loss.accumulated : tensor<f32>)
    %loss = ft.accumulated %l from "loss" : tensor<f32>
    %one = ft.fill 1.0 : tensor<f32>
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64, phase = "optimizer"} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @h by @adamw(%r, %scalars) states ["exp_avg", "exp_avg_sq"] {phase = "optimizer"} : !ft.flat<@h, f32>, tensor<2x1xf32>
    // CHECK: "copy" on compute ins(%[[L]] : tensor<f32>) outs(%loss : tensor<f32>)
    return %loss : tensor<f32>
  }
  func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  }
}
