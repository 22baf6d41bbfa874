// RUN: ft-opt %s --split-input-file --ft-lower-to-ftx --ftx-verify-schedule | FileCheck %s
// RUN: ft-opt %s --split-input-file --ft-lower-to-ftx --ftx-advance-host-step --ftx-overlap-collectives --ftx-verify-schedule | FileCheck %s --check-prefix=OVERLAP

// RUN: ft-opt %s --split-input-file --ft-lower-to-ftx "--ftx-join-transfers=reduce-bucket-mb=25" --ftx-advance-host-step --ftx-overlap-collectives --ftx-verify-schedule | FileCheck %s --check-prefix=JOIN

// Updates on the host: gradients go down, what is computed with comes up.

// Two units in bf16 whose working copies are whole: 16 bits come up, into the own slices, which are then gathered.

module {
  ft.unit @a {compute = bf16, elements = 1024 : i64, reduce = bf16, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = slice, host = optimizer|update>, working_copy}
  ft.unit @b {compute = bf16, elements = 1024 : i64, reduce = bf16, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = slice, host = optimizer|update>, working_copy}
  ft.unit @c {compute = bf16, elements = 1024 : i64, reduce = bf16, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = slice, host = optimizer|update>, working_copy}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "a", offset = 0 : i64, unit = @a}
  ft.parameter @x : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "b", offset = 0 : i64, unit = @b}
  ft.parameter @y : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "c", offset = 0 : i64, unit = @c}
  // CHECK: %a.parameters = ftx.buffer "a.parameters" parameters unit_full(@a, 2) persistent
  // CHECK: %a.master = ftx.buffer "a.master" optimizer_state unit_slice(@a, 4) host persistent
  // CHECK: %a.gradients = ftx.buffer "a.gradients" gradients unit_slice(@a, 2) host persistent
  // CHECK: %a.m = ftx.buffer "a.m" optimizer_state unit_slice(@a, 4) host persistent

  func.func @init() {
    return
  }

  // CHECK-LABEL: ftx.program @train_step
  // OVERLAP-LABEL: ftx.program @train_step
  // JOIN-LABEL: ftx.program @train_step
  // Several at once are copied in their order.
  // JOIN: ftx.start reduce_scatter {{.*}} to (%c.gradient : whole bf16, %b.gradient : whole bf16, %a.gradient : whole bf16)
  // JOIN: ftx.start copy on d2h after compute from (%c.gradient
  // JOIN: ftx.start copy on d2h after compute from (%b.gradient
  // JOIN: ftx.start copy on d2h after compute from (%a.gradient
  func.func @train_step() -> tensor<f32> {
    %one = ft.fill 1.0 : tensor<f32>
    %d = ft.fill 1.0 : tensor<8xbf16>
    // CHECK: %c.flat_gradient = ftx.buffer "c.flat_gradient" staging unit_full(@c, 2)
    // CHECK: %c.gradient = ftx.buffer "c.gradient" gradients unit_slice(@c, 2)
    // CHECK-NEXT: ftx.start reduce_scatter {{.*}} from (%c.flat_gradient : whole bf16) to (%c.gradient : whole bf16)
    %gc = ft.pack %d at [@y] {layer = "c"} : (tensor<8xbf16>) -> !ft.flat<@c, bf16>
    %rc = ft.reduce_scatter %gc {phase = "backward"} : !ft.flat<@c, bf16> -> !ft.slice<@c, bf16>
    %gb = ft.pack %d at [@x] {layer = "b"} : (tensor<8xbf16>) -> !ft.flat<@b, bf16>
    %rb = ft.reduce_scatter %gb {phase = "backward"} : !ft.flat<@b, bf16> -> !ft.slice<@b, bf16>
    %ga = ft.pack %d at [@w] {layer = "a"} : (tensor<8xbf16>) -> !ft.flat<@a, bf16>
    %ra = ft.reduce_scatter %ga {phase = "backward"} : !ft.flat<@a, bf16> -> !ft.slice<@a, bf16>
    %sc = ft.sum_squares %rc {phase = "optimizer"} : (!ft.slice<@c, bf16>) -> tensor<21xi64>
    %sb = ft.sum_squares %rb into %sc {phase = "optimizer"} : (!ft.slice<@b, bf16>, tensor<21xi64>) -> tensor<21xi64>
    %sa = ft.sum_squares %ra into %sb {phase = "optimizer"} : (!ft.slice<@a, bf16>, tensor<21xi64>) -> tensor<21xi64>
    // Behind the next reduction the gradient before is looked at and goes down; the last one behind its own.
    // OVERLAP: ftx.start reduce_scatter {{.*}} @c from
    // OVERLAP: ftx.start reduce_scatter {{.*}} @b from
    // OVERLAP: ftx.start copy on d2h after compute from (%c.gradient : whole bf16) to (%c.gradients : whole bf16)
    // OVERLAP-NEXT: "sum_squares" on compute ins(%c.gradient : whole bf16
    // OVERLAP: ftx.start reduce_scatter {{.*}} @a from
    // OVERLAP: ftx.start copy on d2h after compute from (%b.gradient : whole bf16) to (%b.gradients : whole bf16)
    // OVERLAP-NEXT: "sum_squares" on compute ins(%b.gradient : whole bf16
    // OVERLAP: ftx.start copy on d2h after compute from (%a.gradient : whole bf16) to (%a.gradients : whole bf16)
    // OVERLAP-NEXT: "sum_squares" on compute ins(%a.gradient : whole bf16
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    // What is read by all goes down once.
    // CHECK: ftx.start copy on d2h after compute from (%c.gradient : whole bf16) to (%c.gradients : whole bf16)
    // CHECK: %update_scalars.down = ftx.buffer "update_scalars.down" io constant(8) host
    // CHECK-NEXT: ftx.start copy on d2h after compute from (%update_scalars : tensor<2x1xf32>) to (%update_scalars.down : tensor<2x1xf32>)
    // CHECK-NEXT: ftx.wait
    // CHECK-NEXT: %c.parameters.updated = ftx.buffer "c.parameters.updated" staging unit_slice(@c, 2) host
    // CHECK-NEXT: %[[U:.*]] = ftx.launch "update" on host_compute after compute ins(%c.gradients : whole bf16, %update_scalars.down : tensor<2x1xf32>) outs(%c.master : whole f32, %c.m : whole f32, %c.parameters.updated : whole bf16) with {body = @sgd
    // CHECK-NEXT: ftx.wait %[[U]] on compute
    // CHECK-NEXT: %[[UP:.*]] = ftx.start copy on h2d after compute from (%c.parameters.updated : whole bf16) to (%c.parameters : own bf16)
    // CHECK-NEXT: ftx.wait %[[UP]] on compute
    // CHECK-NEXT: ftx.start all_gather on gather after compute over shard @c from (%c.parameters : own bf16) to (%c.parameters : whole bf16)
    // CHECK-NOT: update_scalars.down.
    // One update runs while what came of the one before goes up.
    // OVERLAP: %[[C:.*]] = ftx.launch "update" {{.*}}ins(%c.gradients
    // OVERLAP: %[[B:.*]] = ftx.launch "update" {{.*}}ins(%b.gradients
    // OVERLAP: %[[A:.*]] = ftx.launch "update" {{.*}}ins(%a.gradients
    // OVERLAP-NEXT: ftx.wait %[[C]] on compute
    // OVERLAP-NEXT: %[[UPC:.*]] = ftx.start copy on h2d after compute from (%c.parameters.updated : whole bf16) to (%c.parameters : own bf16)
    // OVERLAP-NEXT: ftx.wait %[[UPC]] on compute
    // OVERLAP-NEXT: ftx.start all_gather {{.*}} @c from
    // OVERLAP-NEXT: ftx.wait %[[B]] on compute
    // OVERLAP-NEXT: ftx.start copy on h2d after compute from (%b.parameters.updated
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @c by @sgd(%rc, %scalars) states ["m"] {phase = "optimizer"} : !ft.slice<@c, bf16>, tensor<2x1xf32>
    ft.refresh @c {phase = "optimizer"}
    ft.update @b by @sgd(%rb, %scalars) states ["m"] {phase = "optimizer"} : !ft.slice<@b, bf16>, tensor<2x1xf32>
    ft.refresh @b {phase = "optimizer"}
    ft.update @a by @sgd(%ra, %scalars) states ["m"] {phase = "optimizer"} : !ft.slice<@a, bf16>, tensor<2x1xf32>
    ft.refresh @a {phase = "optimizer"}
    return %one : tensor<f32>
  }
  func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m : tensor<1024xf32>, tensor<1024xf32>
  }
}

// -----

// In fp32 the host keeps weights of its own, drawn on the device; all-reduced gradients are whole, and reduced where they are made.

module {
  ft.unit @h {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole, host = optimizer|update>}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "h", offset = 0 : i64, unit = @h}
  // CHECK: %h.parameters = ftx.buffer "h.parameters" parameters unit_full(@h, 4) persistent
  // CHECK: %h.master = ftx.buffer "h.master" optimizer_state unit_full(@h, 4) host persistent
  // CHECK: %h.gradients = ftx.buffer "h.gradients" gradients unit_full(@h, 4) host persistent

  // CHECK-LABEL: ftx.program @init
  // CHECK: "init_constant" on compute ins(%rng : tensor<3xi64>) outs(%h.parameters : whole f32)
  // CHECK-NEXT: ftx.start copy on d2h after compute from (%h.parameters : whole f32) to (%h.master : whole f32)
  func.func @init() {
    %rng = ft.input "rng" : tensor<3xi64>
    ft.init @w, %rng {phase = "init"} : tensor<3xi64>
    return
  }

  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<f32> {
    %s = ft.shard @h : !ft.slice<@h, f32>
    %w = ft.view %s[@w] : !ft.slice<@h, f32> -> tensor<8xf32>
    // CHECK: %h.flat_gradient = ftx.buffer "h.flat_gradient" gradients unit_full(@h, 4)
    // CHECK: "scale" on compute ins(%h.parameters : tensor<8xf32>) outs(%h.flat_gradient : tensor<8xf32>)
    %d = ft.scale %w, 2.0 : tensor<8xf32>
    %g = ft.pack %d at [@w] : (tensor<8xf32>) -> !ft.flat<@h, f32>
    // CHECK: ftx.start all_reduce on reduce after compute over replica @h from (%h.flat_gradient : whole f32) to ()
    %r = ft.all_reduce %g over replica : !ft.flat<@h, f32>
    %one = ft.fill 1.0 : tensor<f32>
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    // CHECK: ftx.start copy on d2h after compute from (%h.flat_gradient : whole f32) to (%h.gradients : whole f32)
    // CHECK: ftx.launch "update" on host_compute after compute ins(%h.gradients : whole f32, {{.*}}) outs(%h.master : whole f32)
    // CHECK-NEXT: ftx.wait
    // CHECK-NEXT: ftx.start copy on h2d after compute from (%h.master : whole f32) to (%h.parameters : whole f32)
    ft.update @h by @sgd(%r, %scalars) states [] : !ft.flat<@h, f32>, tensor<2x1xf32>
    return %one : tensor<f32>
  }
  func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next : tensor<1024xf32>
  }
}

// -----

// Where parameters are on the host already, nothing comes up.

module {
  ft.unit @h {elements = 1024 : i64, residency = #ft.residency<parameters = slice, gathered = until_backward, gradients = slice, optimizer = slice, host = parameters|optimizer|update>}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.5> {layer = "h", offset = 0 : i64, unit = @h}
  // CHECK: %h.parameters = ftx.buffer "h.parameters" parameters unit_slice(@h, 4) host persistent
  // CHECK-NOT: "h.master"
  func.func @init() {
    return
  }
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<f32> {
    %d = ft.fill 1.0 : tensor<8xf32>
    %g = ft.pack %d at [@w] : (tensor<8xf32>) -> !ft.flat<@h, f32>
    %r = ft.reduce_scatter %g : !ft.flat<@h, f32> -> !ft.slice<@h, f32>
    %one = ft.fill 1.0 : tensor<f32>
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    // CHECK: ftx.launch "update" {{.*}} outs(%h.parameters : whole f32)
    // CHECK-NOT: h2d
    ft.update @h by @sgd(%r, %scalars) states [] : !ft.slice<@h, f32>, tensor<2x1xf32>
    return %one : tensor<f32>
  }
  func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next : tensor<1024xf32>
  }
}
