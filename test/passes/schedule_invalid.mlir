// RUN: ft-opt %s --split-input-file --verify-diagnostics --ft-lower-to-ftx --ftx-overlap-collectives

module {
  // expected-error@+1 {{only @init, @train_micro, @train_step, @eval_step and @sample_step can be scheduled, not @forward}}
  func.func @forward() { return }
}

// -----

// expected-error@+1 {{no @train_step to schedule}}
module {
  func.func @init() { return }
}

// -----

module {
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.0>
  func.func @train_step() -> tensor<8xf32> {
    // expected-error@+1 {{cannot be scheduled; run the stages up to shard first}}
    %w = ft.get @w : tensor<8xf32>
    return %w : tensor<8xf32>
  }
}

// -----

module {
  // expected-error@+1 {{has an argument 3 without a name}}
  func.func @train_step(%a: tensor<4xi32>, %b: tensor<4xi32>, %c: tensor<4xi32>) { return }
}

// -----

module {
  ft.unit @u {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = never, gradients = whole, optimizer = whole>}
  ft.parameter @w : tensor<8xf32> = #ft.init<constant, 0.0> {layer = "u", offset = 0 : i64, unit = @u}
  func.func @train_step(%d: tensor<8xf32> {ft.input = "d"}) {
    %g = ft.pack %d at [@w] : (tensor<8xf32>) -> !ft.flat<@u, f32>
    // expected-error@+1 {{adds up what is packed in a place of its own; run ft-accumulate-in-place before}}
    %sum = ft.accumulated %g from "u" : !ft.flat<@u, f32>
    return
  }
}
