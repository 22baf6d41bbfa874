// RUN: ft-opt %s --ftx-assign-live-ranges --ftx-verify-live-ranges | FileCheck %s

// Instructions are counted from 0; ftx.buffer and ports are none. What a collective touches lives until it is waited for.

ft.unit @u {elements = 1024 : i64}
// CHECK: ftx.buffer "p" parameters unit_slice(@u, 4) persistent{{$}}
%p = ftx.buffer "p" parameters unit_slice(@u, 4) persistent
%g = ftx.buffer "g" gradients unit_slice(@u, 4) persistent
%x = ftx.buffer "x" io constant(64) persistent
ftx.program @train_step {
  ftx.input "x" %x : tensor<16xf32>
  // CHECK: ftx.buffer "gathered" gathered unit_full(@u, 4) live [0, 3]
  %f = ftx.buffer "gathered" gathered unit_full(@u, 4)
  %t = ftx.start all_gather on gather after compute over shard @u from (%p : whole f32) to (%f : whole f32)
  ftx.wait %t on compute
  // CHECK: ftx.buffer "y" activations constant(64) live [2, 4]
  %y = ftx.buffer "y" activations constant(64)
  // CHECK: ftx.buffer "scratch" workspace constant(32) live [2, 2]
  %w = ftx.buffer "scratch" workspace constant(32)
  ftx.kernel "use" on compute ins(%x : tensor<16xf32>, %f : tensor<16xf32>) outs(%y : tensor<16xf32>) workspace(%w)
  ftx.release %f
  // CHECK: ftx.buffer "staging" staging unit_full(@u, 4) live [4, 7]
  %s = ftx.buffer "staging" staging unit_full(@u, 4)
  // CHECK-NOT: "unused"
  %n = ftx.buffer "unused" activations constant(64)
  ftx.kernel "backward" on compute ins(%y : tensor<16xf32>) outs(%s : whole f32)
  %r = ftx.start reduce_scatter on reduce after compute over shard @u from (%s : whole f32) to (%g : whole f32)
  // CHECK: ftx.buffer "z" activations constant(64) live [6, 6]
  %z = ftx.buffer "z" activations constant(64)
  ftx.kernel "other" on compute ins() outs(%z : tensor<16xf32>)
  ftx.wait %r on compute
}
