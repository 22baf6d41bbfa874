// RUN: ft-opt %s --ft-verify-collectives -split-input-file -verify-diagnostics

ft.unit @u {elements = 1024 : i64}
func.func @leaks() {
  %s = ft.shard @u : !ft.slice<@u, f32>
  // expected-error @below {{gathered unit is never released}}
  %f = ft.gather %s : !ft.slice<@u, f32> -> !ft.flat<@u, f32>
  return
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @late() -> tensor<4xf32> {
  %s = ft.shard @u : !ft.slice<@u, f32>
  %f = ft.gather %s : !ft.slice<@u, f32> -> !ft.flat<@u, f32>
  %w = ft.view %f[@w] : !ft.flat<@u, f32> -> tensor<4xf32>
  ft.release %f : !ft.flat<@u, f32>
  // expected-error @below {{reads parameter @w after its unit was released}}
  %y = ft.scale %w, 2.0 : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
func.func @unviewed() -> tensor<4xf32> {
  // expected-error @below {{parameter @w is still read without a view of its unit}}
  %w = ft.get @w : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}
func.func @unreduced() {
  %g = ft.fill 1.0 : tensor<4xf32>
  // expected-error @below {{must be read by one reduction over the ranks}}
  %p = ft.pack %g at [@w] : (tensor<4xf32>) -> !ft.flat<@u, f32>
  return
}
