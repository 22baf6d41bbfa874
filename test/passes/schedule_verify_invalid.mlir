// RUN: ft-opt %s --split-input-file --verify-diagnostics --ftx-verify-schedule

ft.unit @u {elements = 1024 : i64}
%p = ftx.buffer "p" parameters unit_slice(@u, 4) persistent
ftx.program @train_step {
  %f = ftx.buffer "f" gathered unit_full(@u, 4)
  // expected-error@+1 {{is never waited for on 'compute'}}
  %t = ftx.start all_gather on gather after compute over shard @u from (%p : whole f32) to (%f : whole f32)
}

// -----

ft.unit @u {elements = 1024 : i64}
%p = ftx.buffer "p" parameters unit_slice(@u, 4) persistent
ftx.program @train_step {
  %f = ftx.buffer "f" gathered unit_full(@u, 4)
  // expected-note@+1 {{started here}}
  %t = ftx.start all_gather on gather after compute over shard @u from (%p : whole f32) to (%f : whole f32)
  // expected-error@+1 {{touches a buffer of a collective that is still under way}}
  ftx.kernel "use" on compute ins(%f : whole f32) outs()
  ftx.wait %t on compute
}

// -----

// Reading what a gather reads is fine, writing it is not.
ft.unit @u {elements = 1024 : i64}
%p = ftx.buffer "p" parameters unit_slice(@u, 4) persistent
ftx.program @train_step {
  %f = ftx.buffer "f" gathered unit_full(@u, 4)
  // expected-note@+1 {{started here}}
  %t = ftx.start all_gather on gather after compute over shard @u from (%p : whole f32) to (%f : whole f32)
  ftx.kernel "read" on compute ins(%p : whole f32) outs()
  // expected-error@+1 {{touches a buffer of a collective that is still under way}}
  ftx.kernel "update" on compute ins() outs(%p : whole f32)
  ftx.wait %t on compute
}

// -----

%x = ftx.buffer "x" io constant(4) persistent
ftx.program @train_step {
  %t = ftx.start all_reduce on reduce after compute over world from (%x : tensor<f32>) to ()
  ftx.wait %t on compute
  // expected-error@+1 {{waits for a collective that was waited for before}}
  ftx.wait %t on compute
}

// -----

%x = ftx.buffer "x" io constant(4) persistent
ftx.program @train_step {
  %t = ftx.start all_reduce on reduce after compute over world from (%x : tensor<f32>) to ()
  // expected-error@+1 {{must be on 'compute'}}
  ftx.wait %t on gather
}

// -----

ftx.program @train_step {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{reads buffer 'b', which nothing has written}}
  ftx.kernel "use" on compute ins(%b : whole f32) outs()
}

// -----

ftx.program @train_step {
  %b = ftx.buffer "b" gathered constant(64)
  ftx.kernel "fill" on compute ins() outs(%b : whole f32)
  ftx.release %b
  // expected-error@+1 {{touches buffer 'b' after its release}}
  ftx.kernel "use" on compute ins(%b : whole f32) outs()
}

// -----

%h = ftx.buffer "h" optimizer_state constant(16) host persistent
ftx.program @train_step {
  // expected-error@+1 {{is never waited for on 'compute'}}
  %t = ftx.launch "update" on host_compute after compute ins() outs(%h : whole f32)
}

// -----

%h = ftx.buffer "h" optimizer_state constant(16) host persistent
%x = ftx.buffer "x" io constant(16) persistent
ftx.program @train_step {
  // expected-note@+1 {{started here}}
  %t = ftx.launch "update" on host_compute after compute ins() outs(%h : whole f32)
  // expected-error@+1 {{touches a buffer of a kernel of the host that is still under way}}
  %c = ftx.start copy on h2d after compute from (%h : whole f32) to (%x : whole f32)
  ftx.wait %t on compute
  ftx.wait %c on compute
}
