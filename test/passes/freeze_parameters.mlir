// RUN: ftc compile %s --strategy=full_shard --frozen=w,head.* --dump=parse | FileCheck %s
// RUN: ftc compile %s --strategy=full_shard --frozen=w,head.* --dump=optimizer | FileCheck %s --check-prefix=OPTIMIZER
// RUN: not ftc compile %s --strategy=full_shard --frozen=w,tail.* --dump=parse 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ftc compile %s --strategy=full_shard '--frozen=*' --dump=parse 2>&1 | FileCheck %s --check-prefix=ALL

// --frozen takes names and globs, which match aliases as well. A frozen parameter has no gradient and no moments.

// CHECK: ft.parameter @table : tensor<8x4xf32> = #ft.init<normal, 0.02> {aliases = ["head.weight"], frozen, layer = "embed"}
// CHECK: ft.parameter @w : tensor<4x4xf32> = #ft.init<normal, 0.02> {frozen, layer = "h.0"}
// CHECK: ft.parameter @b : tensor<4xf32> = #ft.init<constant, 0.0> {layer = "h.0", no_decay}

// OPTIMIZER: func.func @train_step
// OPTIMIZER: ft.update @h.0 by @adamw(
// OPTIMIZER-NOT: ft.update @
// OPTIMIZER: func.func @eval_step

// NONE: freeze_parameters.mlir:{{[0-9]+}}:{{[0-9]+}}: error: no parameter matches 'tail.*', which is to be frozen
// ALL: freeze_parameters.mlir:{{[0-9]+}}:{{[0-9]+}}: error: every ft.parameter is frozen: there is nothing to train
module {
  ft.parameter @table : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "embed", aliases = ["head.weight"]}
  ft.parameter @w : tensor<4x4xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  ft.parameter @b : tensor<4xf32> = #ft.init<constant, 0.0> {layer = "h.0", no_decay}
  func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
    %e = ft.get @table : tensor<8x4xf32>
    %x = ft.embedding %tokens, %e {layer = "embed"} : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
    %w = ft.get @w : tensor<4x4xf32>
    %b = ft.get @b : tensor<4xf32>
    %y = ft.matmul %x, %w bias %b {layer = "h.0"} : (tensor<2x3x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
    %l = ft.matmul %y, %e {transpose_b, layer = "embed"} : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
    %loss = ft.cross_entropy %l, %targets {layer = "embed"} : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
