// RUN: ft-opt %s | ft-opt | FileCheck %s
// RUN: ft-opt %s --mlir-print-op-generic | ft-opt | FileCheck %s

// Every op and every form of a view, printed and parsed again.

ft.unit @h {elements = 2048 : i64}
ft.parameter @w : tensor<8x4xf32> = #ft.init<normal, 0.02> {offset = 1024 : i64, unit = @h}

// CHECK: %h.parameters = ftx.buffer "h.parameters" parameters unit_slice(@h, 4) persistent
%p = ftx.buffer "h.parameters" parameters unit_slice(@h, 4) persistent
// CHECK: %h.gradients = ftx.buffer "h.gradients" gradients unit_slice(@h, 4) persistent
%g = ftx.buffer "h.gradients" gradients unit_slice(@h, 4) persistent
%m = ftx.buffer "h.exp_avg" optimizer_state unit_slice(@h, 4) host persistent
%v = ftx.buffer "h.exp_avg_sq" optimizer_state unit_slice(@h, 4) persistent
// CHECK: %h.exp_avg = ftx.buffer "h.exp_avg" optimizer_state unit_slice(@h, 4) host persistent
// CHECK: ftx.state @h "parameters" %h.parameters
ftx.state @h "parameters" %p
// CHECK-NEXT: ftx.state @h "gradients" %h.gradients
ftx.state @h "gradients" %g
// CHECK-NEXT: ftx.state @h "exp_avg" %h.exp_avg
ftx.state @h "exp_avg" %m
// CHECK-NEXT: ftx.state @h "exp_avg_sq" %h.exp_avg_sq
ftx.state @h "exp_avg_sq" %v
// CHECK: %x = ftx.buffer "x" io constant(128) persistent
%x = ftx.buffer "x" io constant(128) persistent
// CHECK: %loss = ftx.buffer "loss" io constant(4) persistent
%loss = ftx.buffer "loss" io constant(4) persistent

// CHECK-LABEL: ftx.program @train_step
ftx.program @train_step {
  // CHECK: ftx.input "x" %x : tensor<8x4xf32>
  ftx.input "x" %x : tensor<8x4xf32>
  // CHECK: %h.gathered = ftx.buffer "h.gathered" gathered unit_full(@h, 4) live [0, 3]
  %full = ftx.buffer "h.gathered" gathered unit_full(@h, 4) live [0, 3]
  // CHECK: %[[T:.*]] = ftx.start all_gather on gather after compute over shard @h from (%h.parameters : whole f32) to (%h.gathered : whole f32)
  %t = ftx.start all_gather on gather after compute over shard @h from (%p : whole f32) to (%full : whole f32)
  // CHECK: ftx.wait %[[T]] on compute
  ftx.wait %t on compute
  %y = ftx.buffer "y" activations constant(256) {layer = "h"}
  // CHECK: %scratch = ftx.buffer "scratch" workspace constant(64) cuda(4096) live [2, 2]
  %s = ftx.buffer "scratch" workspace constant(64) cuda(4096) live [2, 2]
  // CHECK: %none = ftx.buffer "none" workspace constant(64) cuda(0)
  %none = ftx.buffer "none" workspace constant(64) cuda(0)
  // CHECK: ftx.kernel "matmul" on compute ins(%x : tensor<8x4xf32>, %h.gathered[4096] : tensor<8x4xf32>, none, none) outs(%y : tensor<8x8xf32>) workspace(%scratch) with {transpose_a = false, transpose_b = true} {bytes = 512 : i64, flops = 512 : i64, layer = "h", model_flops = 256 : i64, phase = "forward"}
  ftx.kernel "matmul" on compute ins(%x : tensor<8x4xf32>, %full[4096] : tensor<8x4xf32>, none, none) outs(%y : tensor<8x8xf32>) workspace(%s) with {transpose_a = false, transpose_b = true} {bytes = 512 : i64, flops = 512 : i64, layer = "h", model_flops = 256 : i64, phase = "forward"}
  // CHECK: ftx.release %h.gathered
  ftx.release %full
  // CHECK: ftx.kernel "fill" on compute ins() outs(%loss : tensor<f32>)
  ftx.kernel "fill" on compute ins() outs(%loss : tensor<f32>)
  // CHECK: %[[R:.*]] = ftx.start all_reduce on reduce after compute over world from (%loss : tensor<f32>) to ()
  %r = ftx.start all_reduce on reduce after compute over world from (%loss : tensor<f32>) to ()
  // CHECK: ftx.wait %[[R]] on compute
  ftx.wait %r on compute
  // The own slice of a whole; why it stands here.
  // CHECK: %h.whole = ftx.buffer "h.whole" staging unit_full(@h, 2)
  %whole = ftx.buffer "h.whole" staging unit_full(@h, 2)
  // CHECK: ftx.kernel "cast" on compute ins(%h.parameters : whole f32) outs(%h.whole : own bf16)
  ftx.kernel "cast" on compute ins(%p : whole f32) outs(%whole : own bf16)
  // CHECK: %[[S:.*]] = ftx.start reduce_scatter on reduce after compute over shard @h from (%h.whole : whole bf16) to (%h.whole : own bf16) {reason = "at once"}
  %rs = ftx.start reduce_scatter on reduce after compute over shard @h from (%whole : whole bf16) to (%whole : own bf16) {reason = "at once"}
  // CHECK: ftx.wait %[[S]] on compute
  ftx.wait %rs on compute
  // A kernel of the host.
  // CHECK: %[[U:.*]] = ftx.launch "update" on host_compute after compute ins(%h.exp_avg : whole f32, none) outs(%h.exp_avg : whole f32) with {direction = true} {bytes = 512 : i64, flops = 64 : i64, layer = "h", phase = "optimizer", reason = "at once"}
  %u = ftx.launch "update" on host_compute after compute ins(%m : whole f32, none) outs(%m : whole f32) with {direction = true} {bytes = 512 : i64, flops = 64 : i64, layer = "h", phase = "optimizer", reason = "at once"}
  // CHECK: ftx.wait %[[U]] on compute
  ftx.wait %u on compute
  // A copy from the host of two buffers at once, over no axis; and back.
  // CHECK: %[[C:.*]] = ftx.start copy on h2d after compute from (%h.exp_avg : whole f32, %h.exp_avg : whole f32) to (%one : whole f32, %two : whole f32)
  %one = ftx.buffer "one" optimizer_state unit_slice(@h, 4)
  %two = ftx.buffer "two" optimizer_state unit_slice(@h, 4)
  %c = ftx.start copy on h2d after compute from (%m : whole f32, %m : whole f32) to (%one : whole f32, %two : whole f32)
  // CHECK: ftx.wait %[[C]] on compute
  ftx.wait %c on compute
  // CHECK: %[[D:.*]] = ftx.start copy on d2h after compute from (%one : whole f32) to (%h.exp_avg : whole f32)
  %d = ftx.start copy on d2h after compute from (%one : whole f32) to (%m : whole f32)
  ftx.wait %d on compute
  // CHECK: ftx.output "loss" %loss : tensor<f32>
  ftx.output "loss" %loss : tensor<f32>
}
