// RUN: ft-opt %s --split-input-file --verify-diagnostics --ftx-verify-live-ranges

ftx.program @train_step {
  // expected-error@+1 {{'b' has no live range; run ftx-assign-live-ranges}}
  %b = ftx.buffer "b" activations constant(64)
  ftx.kernel "fill" on compute ins() outs(%b : whole f32)
}

// -----

ftx.program @train_step {
  // expected-error@+1 {{'b' lives to instruction 1 of 1}}
  %b = ftx.buffer "b" activations constant(64) live [0, 1]
  ftx.kernel "fill" on compute ins() outs(%b : whole f32)
}

// -----

ftx.program @train_step {
  %b = ftx.buffer "b" activations constant(64) live [0, 0]
  ftx.kernel "fill" on compute ins() outs(%b : whole f32)
  // expected-error@+1 {{stands at instruction 1, outside of the life of buffer 'b', [0, 0]}}
  ftx.kernel "use" on compute ins(%b : whole f32) outs()
}

// -----

%p = ftx.buffer "p" gradients unit_slice(@u, 4) persistent
ft.unit @u {elements = 1024 : i64}
ftx.program @train_step {
  %b = ftx.buffer "b" staging unit_full(@u, 4) live [0, 1]
  ftx.kernel "fill" on compute ins() outs(%b : whole f32)
  %t = ftx.start reduce_scatter on reduce after compute over shard @u from (%b : whole f32) to (%p : whole f32)
  // expected-error@-1 {{is waited for at instruction 2, outside of the life of buffer 'b', [0, 1]}}
  ftx.wait %t on compute
}
