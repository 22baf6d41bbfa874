// RUN: ftc compile %s --strategy=no_shard --code=none -o %t.plan
// RUN: ftc dump %t.plan | FileCheck %s
// RUN: ftc verify %t.plan
// RUN: sed -e 's/few, .moved/logits, %all/' -e 's/2x7x32xf32>, tensor<2x7xi32>)/2x8x32xf32>, tensor<2x8xi32>)/' %s > %t.mlir
// RUN: ftc compile %t.mlir --strategy=no_shard --code=none -o %t.plan
// RUN: ftc dump %t.plan | FileCheck %s --check-prefix=WHOLE

// What sequences of tokens fill, by name and type: labels only where the model moves them by a token, as transformers' causal
// models do. Others are of masked tokens, or classes of tokens.

// CHECK-LABEL: inputs
// CHECK: input_ids: a batch of i64 [8], filled by tokens (the tokens), below 32
// CHECK: attention_mask: a batch of i1 [8], filled by attention_mask (1 for tokens, 0 for padding)
// CHECK: labels: a batch of i64 [8], filled by labels (the tokens themselves, for the model to shift; -100: not counted), below 32
// CHECK: lengths: a batch of i32 [], filled by lengths (how many tokens there are, padding behind)
// WHOLE: labels: a batch of i64 [8], filled by tensor, below 32

module attributes {ft.tokenizer = "0123456789abcdef"} {
  ft.parameter @table : tensor<32x16xf32> = #ft.init<normal, 0.02> {layer = "h"}
  func.func @forward(%ids: tensor<2x8xi64> {ft.input = "input_ids"}, %mask: tensor<2x8xi1> {ft.input = "attention_mask"},
                     %labels: tensor<2x8xi64> {ft.input = "labels"}, %lengths: tensor<2xi32> {ft.input = "lengths"}) -> tensor<f32> {
    %table = ft.get @table {layer = "h"} : tensor<32x16xf32>
    %tokens = ft.convert %ids {layer = "h"} : tensor<2x8xi64> -> tensor<2x8xi32>
    %all = ft.convert %labels {layer = "h"} : tensor<2x8xi64> -> tensor<2x8xi32>
    %x = ft.embedding %tokens, %table {layer = "h"} : (tensor<2x8xi32>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
    %logits = ft.matmul %x, %table transpose_b {layer = "h"} : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
    %few = ft.slice %logits at [0, 0, 0] {layer = "h"} : tensor<2x8x32xf32> -> tensor<2x7x32xf32>
    %moved = ft.slice %all at [0, 1] {layer = "h"} : tensor<2x8xi32> -> tensor<2x7xi32>
    %loss = ft.cross_entropy %few, %moved {layer = "h"} : (tensor<2x7x32xf32>, tensor<2x7xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
