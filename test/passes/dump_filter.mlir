// RUN: ftc compile %s --strategy=full_shard --dump=shard:@train_step:h.1 | FileCheck %s --check-prefix=LAYER
// RUN: ftc compile %s --strategy=full_shard --dump=shard:@init | FileCheck %s --check-prefix=FUNCTION
// RUN: ftc compile %s --strategy=full_shard '--dump=memory:@eval_step:*.1.*,parse:h.0' | FileCheck %s --check-prefix=TWO
// RUN: not ftc compile %s --strategy=full_shard --dump=shard:@train_stpe 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ftc compile %s --strategy=full_shard --dump=shard:h.7 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ftc compile %s --strategy=full_shard --dump=shard:a:b 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: ftc compile %s --strategy=full_shard --dump=memory | FileCheck %s --check-prefix=WHOLE

// Some ops of a stage: of a function, of a layer. "h.1" is a layer, and all in it, but not "h.10".

// LAYER: {{^}}// @train_step
// LAYER-NOT: layer = "model.h.10"
// LAYER-NOT: layer = "model.embed"
// LAYER: ft.matmul {{.*}}layer = "model.h.1.mlp"
// LAYER-NOT: func.func

// FUNCTION: {{^}}func.func @init
// FUNCTION-NOT: @train_step

// TWO: // after stage parse
// TWO-NEXT: // @forward
// TWO-NEXT: {{.*}}layer = "model.h.0"
// TWO: // after stage memory
// TWO-NEXT: // @eval_step
// TWO-NEXT: {{.*}}layer = "model.h.1.mlp"

// NAME: {{^}}ftc: --dump: after stage shard: unknown function 'train_stpe', did you mean 'train_step'?
// NONE: {{^}}ftc: --dump: after stage shard no op is of layer 'h.7'; --dump=shard shows the layers of all ops
// FORM: {{^}}ftc: --dump=shard:a:b: expected STAGE[:@FUNCTION][:LAYER]

// Attributes of the module stand one in a line, in lists too.
// WHOLE: {{^}}module attributes {{{$}}
// WHOLE: {{^}}  ft.model = "filtered",{{$}}
// WHOLE: {{^}}} {{{$}}
// WHOLE: ft.unit

module attributes {ft.model = "filtered", ft.vocab_size = 8 : i64} {
  ft.parameter @table : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "model.embed"}
  ft.parameter @w0 : tensor<4x4xf32> = #ft.init<normal, 0.02> {layer = "model.h.0"}
  ft.parameter @w1 : tensor<4x4xf32> = #ft.init<normal, 0.02> {layer = "model.h.1.mlp"}
  ft.parameter @w10 : tensor<4x4xf32> = #ft.init<normal, 0.02> {layer = "model.h.10"}
  func.func @forward(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
    %table = ft.get @table : tensor<8x4xf32>
    %x = ft.embedding %tokens, %table {layer = "model.embed"} : (tensor<1x2xi32>, tensor<8x4xf32>) -> tensor<1x2x4xf32>
    %w0 = ft.get @w0 : tensor<4x4xf32>
    %a = ft.matmul %x, %w0 {layer = "model.h.0"} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
    %w1 = ft.get @w1 : tensor<4x4xf32>
    %b = ft.matmul %a, %w1 {layer = "model.h.1.mlp"} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
    %w10 = ft.get @w10 : tensor<4x4xf32>
    %c = ft.matmul %b, %w10 {layer = "model.h.10"} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
    %l = ft.matmul %c, %table {transpose_b, layer = "model.head"} : (tensor<1x2x4xf32>, tensor<8x4xf32>) -> tensor<1x2x8xf32>
    %loss = ft.cross_entropy %l, %targets {layer = "model.head"} : (tensor<1x2x8xf32>, tensor<1x2xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
