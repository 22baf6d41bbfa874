// RUN: ft-opt %s --split-input-file --ft-lower-to-ftx --ftx-verify-schedule | FileCheck %s

// Where a value cannot be in the place that is asked of it, a copy is made; nothing that is used later is overwritten.

// What is accumulated into is used once more.
module {
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step(%tokens: tensor<2x4xi32>) -> tensor<4x8xf32> {
    %acc = ft.fill 1.0 : tensor<4x8xf32>
    %dy = ft.fill 2.0 : tensor<2x4x8xf32>
    // CHECK: "copy" on compute ins(%fill : tensor<4x8xf32>) outs(%embedding_grad : tensor<4x8xf32>)
    // CHECK-NEXT: ftx.buffer "embedding_grad.workspace" workspace constant(0) cuda(
    // CHECK-NEXT: "embedding_grad" on compute ins(%tokens : tensor<2x4xi32>, %{{.*}} : tensor<2x4x8xf32>, %embedding_grad : tensor<4x8xf32>) outs(%embedding_grad : tensor<4x8xf32>)
    %g = ft.embedding_grad %tokens, %dy into %acc : (tensor<2x4xi32>, tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: "add" on compute ins(%embedding_grad : tensor<4x8xf32>, %fill : tensor<4x8xf32>) outs(%loss : tensor<4x8xf32>)
    %s = ft.add %g, %acc : tensor<4x8xf32>, tensor<4x8xf32>
    return %s : tensor<4x8xf32>
  }
}

// -----

// It dies there: no copy.
module {
  // CHECK-LABEL: ftx.program @train_step
  // CHECK-NOT: "copy"
  // CHECK: "embedding_grad" on compute ins(%{{.*}}, %{{.*}}, %loss : tensor<4x8xf32>) outs(%loss : tensor<4x8xf32>)
  func.func @train_step(%tokens: tensor<2x4xi32>) -> tensor<4x8xf32> {
    %acc = ft.fill 1.0 : tensor<4x8xf32>
    %dy = ft.fill 2.0 : tensor<2x4x8xf32>
    %g = ft.embedding_grad %tokens, %dy into %acc : (tensor<2x4xi32>, tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %g : tensor<4x8xf32>
  }
}

// -----

// What an elementwise kernel could overwrite is used once more, or is used twice by the same op.
module {
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> tensor<8xf32> {
    // CHECK: "scale" on compute ins(%fill : tensor<8xf32>) outs(%scale : tensor<8xf32>)
    // CHECK: "add" on compute ins(%scale : tensor<8xf32>, %scale : tensor<8xf32>) outs(%scale : tensor<8xf32>)
    // CHECK: "mul" on compute ins(%scale : tensor<8xf32>, %fill : tensor<8xf32>) outs(%loss : tensor<8xf32>)
    %x = ft.fill 1.0 : tensor<8xf32>
    %y = ft.scale %x, 2.0 : tensor<8xf32>
    %z = ft.add %y, %y : tensor<8xf32>, tensor<8xf32>
    %m = ft.mul %z, %x : tensor<8xf32>, tensor<8xf32>
    return %m : tensor<8xf32>
  }
}

// -----

// One gradient for two parameters, and one that is needed after it was packed (the reduction overwrites it).
module {
  ft.unit @u {elements = 2048 : i64}
  ft.parameter @a : tensor<8xf32> = #ft.init<constant, 0.0> {offset = 0 : i64, unit = @u}
  ft.parameter @b : tensor<8xf32> = #ft.init<constant, 0.0> {offset = 1024 : i64, unit = @u}
  ft.unit @v {elements = 1024 : i64}
  ft.parameter @c : tensor<8xf32> = #ft.init<constant, 0.0> {offset = 0 : i64, unit = @v}
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step() -> (tensor<8xf32>, tensor<f32>) {
    %g = ft.fill 1.0 : tensor<8xf32>
    // CHECK: "copy" on compute ins(%fill : tensor<8xf32>) outs(%u.gradients : tensor<8xf32>)
    // CHECK: "copy" on compute ins(%fill : tensor<8xf32>) outs(%u.gradients[4096] : tensor<8xf32>)
    %p = ft.pack %g, %g at [@a, @b] : (tensor<8xf32>, tensor<8xf32>) -> !ft.flat<@u, f32>
    // CHECK: ftx.start all_reduce on reduce after compute over replica @u from (%u.gradients : whole f32) to ()
    %r = ft.all_reduce %p over replica : !ft.flat<@u, f32>
    // CHECK: "fill" on compute ins() outs(%loss : tensor<8xf32>)
    %h = ft.fill 3.0 : tensor<8xf32>
    // CHECK: "copy" on compute ins(%loss : tensor<8xf32>) outs(%v.gradients : tensor<8xf32>)
    %q = ft.pack %h at [@c] : (tensor<8xf32>) -> !ft.flat<@v, f32>
    %s = ft.all_reduce %q over replica : !ft.flat<@v, f32>
    %one = ft.fill 1.0 : tensor<f32>
    %lr = ft.input "lr" : tensor<f32>
    %t = ft.input "step" : tensor<i64>
    %scalars = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @u by @adamw(%r, %scalars) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@u, f32>, tensor<2x1xf32>
    %scalars2 = ft.update_scalars %one, %lr, %t {formulas = "clip", weight_decay = 0.1 : f64} : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x1xf32>
    ft.update @v by @adamw(%s, %scalars2) states ["exp_avg", "exp_avg_sq"] : !ft.flat<@v, f32>, tensor<2x1xf32>
    return %h, %one : tensor<8xf32>, tensor<f32>
  }
  func.func private @adamw(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
    %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
    %next = ft.sub %p, %step : tensor<1024xf32>
    return %next, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  }
}

// -----

// An argument and a value that is returned twice are copied to their ports.
module {
  // CHECK-LABEL: ftx.program @train_step
  func.func @train_step(%tokens: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
    // CHECK: "copy" on compute ins(%tokens : tensor<4xi32>) outs(%loss : tensor<4xi32>)
    // CHECK: "copy" on compute ins(%tokens : tensor<4xi32>) outs(%grad_norm : tensor<4xi32>)
    return %tokens, %tokens : tensor<4xi32>, tensor<4xi32>
  }
}
