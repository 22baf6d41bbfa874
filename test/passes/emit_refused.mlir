// RUN: split-file %s %t
// RUN: not ftc compile %t/syntax.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/syntax.mlir
// RUN: not ftc compile %t/shapes.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/shapes.mlir
// RUN: not ftc compile %t/empty.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/empty.mlir
// RUN: not ftc compile %t/nothing_to_train.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/nothing_to_train.mlir
// RUN: not ftc compile %t/signature.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/signature.mlir
// RUN: not ftc compile %t/two.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/two.mlir
// RUN: not ftc compile %t/foreign.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/foreign.mlir
// RUN: not ftc compile %t/vocabulary.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/vocabulary.mlir
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
// CHECK: signature.mlir:3:3: error: @forward must be (tokens: tensor<BxTxi32>, targets: tensor<BxTxi32>) -> tensor<f32>, not '(tensor<2x4xi32>) -> tensor<f32>'
// CHECK-NOT: {{.}}

//--- two.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02>
  func.func @backward() { return }
}
// CHECK: two.mlir:3:3: error: a model has one function, @forward; what is @backward?
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
