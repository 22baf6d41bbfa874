// RUN: split-file %s %t
// RUN: not ftc compile %t/syntax.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/syntax.mlir
// RUN: not ftc compile %t/shapes.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/shapes.mlir
// RUN: not ftc compile %t/empty.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/empty.mlir
// RUN: not ftc compile %t/nothing_to_train.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/nothing_to_train.mlir
// RUN: not ftc compile %t/signature.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/signature.mlir
// RUN: not ftc compile %t/two.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/two.mlir
// RUN: not ftc compile %t/foreign.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/foreign.mlir
// RUN: not ftc compile %t/vocabulary.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/vocabulary.mlir
// RUN: not ftc compile %t/undeclared.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/undeclared.mlir
// RUN: not ftc compile %t/batch.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/batch.mlir
// RUN: not ftc compile %t/seq_len.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/seq_len.mlir
// RUN: not ftc compile %t/name.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/name.mlir
// RUN: not ftc compile %t/unknown.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/unknown.mlir
// RUN: not ls %t/plan.bin

// A model that cannot be compiled gets one line that names the place, and no plan.

//--- syntax.mlir
module {
  ft.parameter @w : tensor<4xf32
}
// CHECK: {{^}}{{.*}}syntax.mlir:2:33: error: expected '>' in tensor type
// CHECK-NOT: {{.}}

//--- shapes.mlir
module {
  ft.parameter @w : tensor<5x8xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %w = ft.get @w : tensor<5x9xf32>
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}shapes.mlir:4:10: error: {{.*}}
// CHECK-NOT: {{.}}

//--- empty.mlir
module {
}
// CHECK: empty.mlir:1:1: error: no function @forward; a model is a module with ft.parameter ops and @forward
// CHECK-NOT: {{.}}

//--- nothing_to_train.mlir
module {
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: nothing_to_train.mlir:1:1: error: no ft.parameter: there is nothing to train
// CHECK-NOT: {{.}}

//--- signature.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: signature.mlir:3:3: error: @forward must be (tokens: tensor<BxTxi32>, targets: tensor<BxTxi32>) -> tensor<f32>, or give each argument a name, {ft.input = "..."}; it is '(tensor<2x4xi32>) -> tensor<f32>'
// CHECK-NOT: {{.}}

//--- two.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @backward() { return }
}
// CHECK: two.mlir:3:3: error: a model has one function, @forward, and composites, which are private and have the attribute ft.composite; what is @backward?
// CHECK-NOT: {{.}}

//--- foreign.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  ft.unit @u {elements = 1024 : i64}
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %s = ft.shard @u : !ft.slice<@u, f32>
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: foreign.mlir:5:10: error: 'ft.shard' op cannot stand in a model; models are made of the compute ops of dialect ft
// CHECK-NOT: {{.}}

//--- vocabulary.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: vocabulary.mlir:3:3: error: no ft.embedding looks up the tokens, so the vocabulary is unknown; set the module's attribute 'ft.vocab_size'
// CHECK-NOT: {{.}}

//--- undeclared.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %los : tensor<f32>
  }
}
// CHECK: undeclared.mlir:5:12: error: use of undeclared SSA value name '%los', did you mean '%loss'?
// CHECK-NOT: {{.}}

//--- batch.mlir
module attributes {ft.batch = -5 : i64} {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: batch.mlir:1:1: error: 'ft.batch' is -5 : i64, but @forward takes tokens of 'tensor<2x4xi32>'; expected 2 : i64
// CHECK-NOT: {{.}}

//--- seq_len.mlir
module attributes {ft.seq_len = "four"} {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: seq_len.mlir:1:1: error: 'ft.seq_len' is "four", but @forward takes tokens of 'tensor<2x4xi32>'; expected 4 : i64
// CHECK-NOT: {{.}}

//--- name.mlir
module attributes {ft.model = 7 : i64} {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: name.mlir:1:1: error: 'ft.model' is 7 : i64; expected a text
// CHECK-NOT: {{.}}

//--- unknown.mlir
module attributes {ft.seqlen = 4 : i64} {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @forward(%tokens: tensor<2x4xi32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
    %loss = ft.fill 0.0 : tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: unknown.mlir:1:1: error: unknown attribute of a model 'ft.seqlen', did you mean 'ft.seq_len'?
// CHECK-NOT: {{.}}
