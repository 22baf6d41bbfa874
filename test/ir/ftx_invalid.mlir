// RUN: ft-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{has a size constant that names a unit}}
%b = ftx.buffer "b" io constant(@u, 4) persistent

// -----

// expected-error@+1 {{has a size unit_full that names no unit}}
%b = ftx.buffer "b" gathered unit_full(4) persistent

// -----

// expected-error@+1 {{is not persistent, so it must stand in a program}}
%b = ftx.buffer "b" io constant(4)

// -----

ftx.program @p {
  // expected-error@+1 {{is persistent, so it must stand outside of programs}}
  %b = ftx.buffer "b" io constant(4) persistent
}

// -----

ftx.program @p {
  // expected-error@+1 {{has a size for CUDA; only scratch of a constant size on the device may}}
  %b = ftx.buffer "b" activations constant(4) cuda(8)
}

// -----

// expected-error@+1 {{has a size for CUDA; only scratch of a constant size on the device may}}
%b = ftx.buffer "b" workspace constant(4) cuda(8) persistent

// -----

ftx.program @p {
  // expected-error@+1 {{has a size for CUDA; only scratch of a constant size on the device may}}
  %b = ftx.buffer "b" workspace constant(4) cuda(8) host
}

// -----

ft.unit @u {elements = 1024 : i64}
ftx.program @p {
  // expected-error@+1 {{has a size for CUDA; only scratch of a constant size on the device may}}
  %b = ftx.buffer "b" workspace unit_slice(@u, 4) cuda(8)
}

// -----

ftx.program @p {
  // expected-error@+1 {{has a negative size}}
  %b = ftx.buffer "b" workspace constant(4) cuda(-8)
}

// -----

ftx.program @p {
  // expected-error@+1 {{has a live range that ends before it begins}}
  %b = ftx.buffer "b" io constant(4) live [3, 2]
}

// -----

ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{output 0 ends at byte 72 of buffer 'b', which has 64}}
  ftx.kernel "fill" on compute ins() outs(%b[8] : tensor<16xf32>)
}

// -----

ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{output 0 has offset 8}}
  ftx.kernel "fill" on compute ins() outs(%b[8] : whole f32)
}

// -----

ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{expected a tensor type, or 'whole' or 'own' and an element type}}
  ftx.kernel "fill" on compute ins() outs(%b : f32)
}

// -----

ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{runs on 'gather'; kernels run on 'compute'}}
  ftx.kernel "fill" on gather ins() outs(%b : whole f32)
}

// -----

ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{takes inputs and 0 outputs}}
  %t = ftx.start all_reduce on reduce after compute over world from (%b : whole f32) to (%b : whole f32)
}

// -----

ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{runs on a stream of its own (copies on h2d and d2h) and begins after 'compute'}}
  %t = ftx.start all_reduce on compute after compute over world from (%b : whole f32) to ()
}

// -----

%s = ftx.buffer "s" parameters constant(64) persistent
ftx.program @p {
  %b = ftx.buffer "b" gathered constant(64)
  // expected-error@+1 {{needs the unit that it is about}}
  %t = ftx.start all_gather on gather after compute over shard from (%s : whole f32) to (%b : whole f32)
}

// -----

ftx.program @p {
  %b = ftx.buffer "b" io constant(4)
  // expected-error@+1 {{'loss' needs a persistent buffer}}
  ftx.output "loss" %b : tensor<f32>
}

// -----

%b = ftx.buffer "b" io constant(4) persistent
ftx.program @p {
  // expected-error@+1 {{'tokens' is larger than its buffer}}
  ftx.input "tokens" %b : tensor<2xi32>
}

// -----

ftx.program @p {
  // expected-error@+1 {{cannot stand in an ftx.program}}
  %rng = ft.input "rng" : tensor<3xi64>
}

// -----

ft.unit @u {elements = 1024 : i64}
%s = ftx.buffer "s" parameters unit_slice(@u, 4) persistent
ftx.program @p {
  // expected-error@+1 {{output 0 is the own slice of buffer 's', which is no whole unit}}
  ftx.kernel "fill" on compute ins() outs(%s : own f32)
}

// -----

%h = ftx.buffer "h" activations constant(64) host persistent
ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{runs on a stream of its own (copies on h2d and d2h) and begins after 'compute'}}
  %t = ftx.start copy on gather after compute from (%h : whole f32) to (%b : whole f32)
}

// -----

%h = ftx.buffer "h" activations constant(64) host persistent
ftx.program @p {
  %b = ftx.buffer "b" activations constant(64)
  // expected-error@+1 {{is a copy, which goes over no axis}}
  %t = ftx.start copy on h2d after compute over shard from (%h : whole f32) to (%b : whole f32)
}

// -----

%x = ftx.buffer "x" io constant(64) persistent
ftx.program @p {
  // expected-error@+1 {{needs an axis}}
  %t = ftx.start all_reduce on reduce after compute from (%x : whole f32) to ()
}

// -----

ft.unit @u {elements = 1024 : i64}
%s = ftx.buffer "s" parameters unit_slice(@u, 4) persistent
ftx.program @p {
  %b = ftx.buffer "b" gathered unit_full(@u, 4)
  // expected-error@+1 {{takes inputs and 2 outputs}}
  %t = ftx.start all_gather on gather after compute over shard @u from (%s : whole f32, %s : whole f32) to (%b : whole f32)
}

// -----

%h = ftx.buffer "h" optimizer_state constant(16) host persistent
ftx.program @p {
  // expected-error@+1 {{runs on 'host_compute' and begins after 'compute'}}
  %t = ftx.launch "update" on compute after compute ins(%h : whole f32) outs()
}

// -----

%x = ftx.buffer "x" io constant(16) persistent
%h = ftx.buffer "h" optimizer_state constant(16) host persistent
ftx.program @p {
  // expected-error@+1 {{touches buffer 'x', which is not in host memory}}
  %t = ftx.launch "update" on host_compute after compute ins(%x : whole f32) outs(%h : whole f32)
}

// -----

%x = ftx.buffer "x" io constant(16) persistent
ftx.program @p {
  // expected-error@+1 {{runs on 'host_compute'; kernels run on 'compute'}}
  ftx.kernel "update" on host_compute ins(%x : whole f32) outs()
}

// -----

%x = ftx.buffer "x" io constant(16) persistent
ftx.program @p {
  // expected-error@+1 {{runs on a stream of its own (copies on h2d and d2h) and begins after 'compute'}}
  %t = ftx.start all_reduce on host_compute after compute over world from (%x : whole f32) to ()
}
