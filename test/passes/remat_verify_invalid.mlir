// RUN: ft-opt %s --ft-verify-remat -split-input-file -verify-diagnostics

func.func @reads_original(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "recompute"} : tensor<4x8xf32>
  // expected-error @below {{'ft.mul' op reads what 'ft.silu' computed in forward, which is marked remat = "recompute"}}
  %b = ft.mul %a, %x {layer = "a", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

func.func @other_attribute(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "recompute"} : tensor<4x8xf32>
  // expected-error @below {{'ft.relu' op is of phase "recompute" but repeats no forward op marked remat = "recompute", or one that was repeated before}}
  %b = ft.relu %x {layer = "a", phase = "recompute"} : tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

func.func @other_operand(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "recompute"} : tensor<4x8xf32>
  // expected-error @below {{repeats no forward op}}
  %b = ft.silu %y {layer = "a", phase = "recompute"} : tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

func.func @other_layer(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "recompute"} : tensor<4x8xf32>
  // expected-error @below {{repeats no forward op}}
  %b = ft.silu %x {layer = "b", phase = "recompute"} : tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

func.func @twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "recompute"} : tensor<4x8xf32>
  %b = ft.silu %x {layer = "a", phase = "recompute"} : tensor<4x8xf32>
  // expected-error @below {{repeats no forward op}}
  %c = ft.silu %x {layer = "a", phase = "recompute"} : tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

func.func @no_reload(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "offload"} : tensor<4x8xf32>
  %h = ft.offload %a {layer = "a", phase = "forward"} : tensor<4x8xf32> -> !ft.host<tensor<4x8xf32>>
  %c = ft.reload %h {layer = "a", phase = "backward"} : !ft.host<tensor<4x8xf32>> -> tensor<4x8xf32>
  // expected-error @below {{'ft.mul' op reads what 'ft.silu' computed in forward, which is marked remat = "offload", without ft.reload}}
  %b = ft.mul %a, %c {layer = "a", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

func.func @early(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "offload"} : tensor<4x8xf32>
  // expected-error @below {{stands before an op of forward that reads what it moves away}}
  %h = ft.offload %a {layer = "a", phase = "forward"} : tensor<4x8xf32> -> !ft.host<tensor<4x8xf32>>
  %b = ft.mul %a, %x {layer = "a", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
  %c = ft.reload %h {layer = "a", phase = "backward"} : !ft.host<tensor<4x8xf32>> -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

func.func @unmarked(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "keep"} : tensor<4x8xf32>
  // expected-error @below {{moves what is not marked remat = "offload"}}
  %h = ft.offload %a {layer = "a", phase = "forward"} : tensor<4x8xf32> -> !ft.host<tensor<4x8xf32>>
  %c = ft.reload %h {layer = "a", phase = "backward"} : !ft.host<tensor<4x8xf32>> -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}
