// RUN: ftc compile %s --strategy=full_shard --dump | FileCheck %s --check-prefixes=FULL
// RUN: ftc compile %s --strategy=shard_grad_op --dump | FileCheck %s --check-prefixes=GRAD
// RUN: ftc --dump %s --strategy=NO_SHARD | FileCheck %s --check-prefixes=NONE,BUCKET
// RUN: ftc --dump %s --strategy=NO_SHARD --bucket-cap-mb=0 | FileCheck %s --check-prefixes=NONE,SINGLE
// RUN: ftc compile %s --strategy=zero3 --dump | ft-opt | FileCheck %s --check-prefixes=FULL
// RUN: ftc compile %s --strategy=full_shard --dump > %t.first && ft-opt %t.first > %t.second && ft-opt %t.second | cmp - %t.second

// Where units are gathered, used, released, and where their gradients are reduced, under each strategy.

module attributes {ft.model = "two_layers", ft.vocab_size = 8 : i64} {
  ft.parameter @table : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "embed"}
  ft.parameter @w0 : tensor<4x4xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  ft.parameter @w1 : tensor<4x4xf32> = #ft.init<normal, 0.02> {layer = "h.1"}
  ft.parameter @head : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "out"}
  func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
    %e = ft.get @table : tensor<8x4xf32>
    %x = ft.embedding %tokens, %e {layer = "embed"} : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
    %w0 = ft.get @w0 : tensor<4x4xf32>
    %y = ft.matmul %x, %w0 {layer = "h.0"} : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %w1 = ft.get @w1 : tensor<4x4xf32>
    %z = ft.matmul %y, %w1 {layer = "h.1"} : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %h = ft.get @head : tensor<8x4xf32>
    %l = ft.matmul %z, %h {transpose_b, layer = "out"} : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
    %loss = ft.cross_entropy %l, %targets {layer = "out"} : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// Forward: gather, use, release; the next unit's gather starts before the use.
// FULL-LABEL: ftx.program @train_step
// FULL: all_gather {{.*}} to (%embed.gathered :
// FULL: all_gather {{.*}} to (%h.0.gathered :
// FULL: "embedding" on compute ins(%tokens : tensor<2x3xi32>, %embed.gathered :
// FULL: ftx.release %embed.gathered {{.*}}phase = "forward"
// FULL: all_gather {{.*}} to (%h.1.gathered :
// FULL: "matmul" on compute ins({{.*}}, %h.0.gathered : tensor<4x4xf32>
// FULL: ftx.release %h.0.gathered {{.*}}phase = "forward"
// FULL: all_gather {{.*}} to (%out.gathered :
// FULL: "matmul" on compute ins({{.*}}, %h.1.gathered : tensor<4x4xf32>
// FULL: ftx.release %h.1.gathered {{.*}}phase = "forward"
// Backward: gathered again, used, released; the gradient is scattered.
// FULL: all_gather {{.*}} to (%h.1.gathered.2 :
// FULL: "linear_cross_entropy_loss_grad" on compute ins({{.*}}, %out.gathered :
// FULL: ftx.release %out.gathered
// FULL: reduce_scatter {{.*}} from (%out.flat_gradient : whole f32) to (%out.gradients : whole f32)
// FULL: all_gather {{.*}} to (%h.0.gathered.2 :
// FULL: "matmul" on compute ins({{.*}}, %h.1.gathered.2 :
// FULL: ftx.release %h.1.gathered.2 {{.*}}phase = "backward"
// FULL: "matmul" on compute ins({{.*}}, %h.0.gathered.2 :
// FULL: ftx.release %h.0.gathered.2 {{.*}}phase = "backward"
// FULL: reduce_scatter {{.*}} from (%embed.flat_gradient : whole f32) to (%embed.gradients : whole f32)
// The norm over all slices, then the optimizer on what the rank holds.
// FULL: "sum_squares" on compute ins(%out.gradients : whole f32, none, %inverse_ranks : tensor<f32>)
// FULL: all_reduce {{.*}} over shard from (%sum_squares : tensor<21xi64>)
// FULL: "clip_coefficient"
// FULL: "update" on compute ins(%out.gradients : whole f32, {{.*}} outs(%out.parameters : whole f32, %out.exp_avg : whole f32, %out.exp_avg_sq : whole f32)

// One gather of each unit, kept until the backward phase is through with it.
// GRAD-LABEL: ftx.program @train_step
// GRAD: all_gather {{.*}} to (%h.0.gathered :
// GRAD: "linear_cross_entropy_loss_grad"
// GRAD: "matmul" on compute ins({{.*}}, %h.0.gathered :
// GRAD: ftx.release %h.0.gathered {{.*}}phase = "backward"
// GRAD-NOT: h.0.gathered.2
// GRAD: reduce_scatter

// Whole parameters, gradients reduced where they lie.
// NONE-LABEL: ftx.program @train_step
// NONE-NOT: all_gather
// NONE-NOT: ftx.release
// NONE: "embedding" on compute ins(%tokens : tensor<2x3xi32>, %embed.parameters : tensor<8x4xf32>)
// NONE: "linear_cross_entropy_loss_grad" {{.*}} %out.gradients : tensor<8x4xf32>)
// SINGLE: all_reduce {{.*}} over replica @out from (%out.gradients : whole f32) to ()
// SINGLE: all_reduce {{.*}} over replica @h.1 from (%h.1.gradients : whole f32) to ()
// BUCKET: all_reduce {{.*}} over replica @out from (%out.gradients : whole f32, %h.1.gradients : whole f32, %h.0.gradients : whole f32, %embed.gradients : whole f32) to ()
// NONE-NOT: reduce_scatter
// NONE: "sum_squares" on compute ins(%out.gradients : whole f32, none, %inverse_ranks : tensor<f32>)
// NONE-NOT: ftx.start all_reduce
// NONE: "update" on compute ins(%out.gradients : whole f32
