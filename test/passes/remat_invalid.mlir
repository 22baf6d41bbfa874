// RUN: ft-opt %s --ft-apply-remat --ft-verify-remat -split-input-file -verify-diagnostics

func.func @gone(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{'ft.silu' op has remat = "forget"; expected "keep", "recompute" or "offload"}}
  %a = ft.silu %x {layer = "a", phase = "forward", remat = "forget"} : tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}

// -----

func.func @late(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{'ft.silu' op is marked for recomputation but is not of the forward phase}}
  %a = ft.silu %x {layer = "a", phase = "backward", remat = "keep"} : tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}

// -----

ft.parameter @w : tensor<8xf32> = #ft.init<normal, 0.02>
func.func @parameter(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'ft.get' op is marked remat = "recompute" but cannot be computed again}}
  %w = ft.get @w {layer = "a", phase = "forward", remat = "recompute"} : tensor<8xf32>
  return %w : tensor<8xf32>
}

// -----

func.func @fused(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %t: tensor<4xi32>) -> tensor<4x8xf32> {
  // expected-error @below {{'ft.linear_cross_entropy_loss_grad' op is marked remat = "recompute" but cannot be computed again}}
  %l, %dx, %dw = ft.linear_cross_entropy_loss_grad %x, %w, %t dloss 1.0 {layer = "a", phase = "forward", remat = "recompute"}
    : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4x8xf32>, tensor<16x8xf32>)
  return %dx : tensor<4x8xf32>
}
