// RUN: rm -rf %t && mkdir -p %t
// RUN: ftc compile %s --strategy=full_shard -o %t/plan.bin --dump-dir=%t/ir
// RUN: ftc verify %t/plan.bin | FileCheck %s --check-prefix=VALID
// RUN: ftc dump %t/plan.bin | FileCheck %s
// RUN: ls %t/ir | FileCheck %s --check-prefix=FILES
// RUN: ftc compile %s --strategy=full_shard -o %t/again.bin && cmp %t/plan.bin %t/again.bin
// RUN: ls %t | FileCheck %s --check-prefix=LEFT

// The plan is the last IR, number for number; the same model gives the same bytes; no temporary file is left.

// VALID: plan.bin: valid, hash {{[0-9a-f]+}}: 3 programs
// FILES: 00-parse.mlir
// FILES-NEXT: 01-fuse.mlir
// FILES-NEXT: 02-autodiff.mlir
// FILES-NEXT: 03-units.mlir
// FILES-NEXT: 04-optimizer.mlir
// FILES-NEXT: 05-remat.mlir
// FILES-NEXT: 06-shard.mlir
// FILES-NEXT: 07-precision.mlir
// FILES-NEXT: 08-cluster.mlir
// FILES-NEXT: 09-lower.mlir
// FILES-NEXT: 10-schedule.mlir
// FILES-NEXT: 11-memory.mlir
// LEFT: again.bin
// LEFT-NEXT: ir
// LEFT-NEXT: plan.bin
// LEFT-NOT: {{.}}

// CHECK: model emit_plan, strategy full_shard, batch 2 x 3 tokens, vocabulary 8, blocks of 1024 elements
// CHECK: beta2 = 0.95
// CHECK: units
// CHECK-NEXT: 0 embed: 1024 elements
// CHECK-NEXT: 1 h.0: 2048 elements
// CHECK: parameters
// CHECK-NEXT: table [8x4] at 0 of embed, decays
// CHECK-NEXT: w [4x4] at 0 of h.0, decays
// CHECK-NEXT: b [4] at 1024 of h.0{{$}}
// CHECK: buffers
// CHECK-NEXT: 0 parameters 'embed.parameters': 4 B x slice of embed, persistent
// CHECK: io 'tokens': 24 B, persistent
// CHECK: gathered 'embed.gathered': 4 B x whole of embed, program 1 [0,
// CHECK: workspace 'h.0.matmul.workspace': 0 B (33554432 B on CUDA), program 1 [

// CHECK-LABEL: program init
// CHECK: input rng: 'rng' i64[3]
// CHECK: compute init_normal in('rng' i64[3]) out('embed.parameters' whole f32) {parameter = 0, value = 0.02}
// CHECK-LABEL: program train_step
// CHECK: output loss: 'loss' f32[]
// CHECK-NEXT: output grad_norm: 'grad_norm' f32[]
// The first gather waits for nothing, the second for `compute`; waits name the starts.
// CHECK: 0 gather all_gather embed over shard in('embed.parameters' whole f32) out('embed.gathered' whole f32)
// CHECK-NEXT: 1 compute wait after 0
// CHECK-NEXT: 2 gather all_gather h.0 after 1 over shard
// CHECK-NEXT: 3 compute embedding in('tokens' i32[2x3], 'embed.gathered' f32[8x4])
// Absent operands keep their place, flags are numbers.
// CHECK: compute matmul in('embed.embedding' f32[2x3x4], 'h.0.gathered' f32[4x4], 'h.0.gathered'[4096] f32[4], none) out({{.*}}) workspace('h.0.matmul.workspace' whole u8) {transpose_a = 0, transpose_b = 0}
// CHECK: compute release h.0 in('h.0.gathered' whole u8)
// CHECK-LABEL: program eval_step
// CHECK: output loss_sum: 'loss_sum' f32[2]
// CHECK: compute loss_count in({{.*}}, 'targets' i32[2x3]) out('loss_sum' f32[2])
module {
  ft.parameter @table : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "embed"}
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
