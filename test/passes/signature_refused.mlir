// RUN: split-file %s %t
// RUN: not ftc compile %t/unnamed.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/unnamed.mlir
// RUN: not ftc compile %t/twice.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/twice.mlir
// RUN: not ftc compile %t/reserved.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/reserved.mlir
// RUN: not ftc compile %t/letters.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/letters.mlir
// RUN: not ftc compile %t/type.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/type.mlir
// RUN: not ftc compile %t/dynamic.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/dynamic.mlir
// RUN: not ftc compile %t/batch.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/batch.mlir
// RUN: not ftc compile %t/constants.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/constants.mlir
// RUN: not ftc compile %t/attribute.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/attribute.mlir
// RUN: not ftc compile %t/bf16.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/bf16.mlir
// RUN: not ftc compile %t/output.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/output.mlir
// RUN: not ftc compile %t/logits.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/logits.mlir
// RUN: not ftc compile %t/loss.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/loss.mlir
// RUN: not ftc compile %t/same.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/same.mlir
// RUN: not ftc compile %t/length.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/length.mlir
// RUN: not ftc compile %t/large.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/large.mlir
// RUN: not ftc compile %t/program.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/program.mlir
// RUN: not ftc compile %t/parameter.mlir --strategy=full_shard -o %t/plan.bin 2>&1 | FileCheck %t/parameter.mlir
// RUN: not ls %t/plan.bin

// What a signature cannot be: one line that names the place, and no plan.

//--- unnamed.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}, %y: tensor<2xi32>) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}unnamed.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}argument 2 of @forward has no name, {ft.input = "..."}, but another one has
// CHECK-NOT: {{.}}

//--- twice.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}, %y: tensor<2xi32> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}twice.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}two inputs or outputs are called 'x'
// CHECK-NOT: {{.}}

//--- reserved.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "lr"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}reserved.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}an input cannot be called 'lr', which means something else already
// CHECK-NOT: {{.}}

//--- letters.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "a.b"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}letters.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}an input cannot be called 'a.b'; expected at most 64 letters, digits and underscores, no digit first
// CHECK-NOT: {{.}}

//--- type.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf16> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}type.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}input 'x' is 'tensor<2x4xf16>'; expected a tensor of i32, i64, f32, bf16 or i1 with at most 8 positive static dimensions
// CHECK-NOT: {{.}}

//--- dynamic.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x?xf32> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}dynamic.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}input 'x' is 'tensor<2x?xf32>'; expected a tensor of i32, i64, f32, bf16 or i1 with at most 8 positive static dimensions
// CHECK-NOT: {{.}}

//--- batch.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}, %m: tensor<4x4xi1> {ft.input = "mask"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}batch.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}input 'mask' is 'tensor<4x4xi1>', whose first dimension is not the batch of 2; if it is the same for all examples, say so with ft.constant
// CHECK-NOT: {{.}}

//--- constants.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%m: tensor<4x4xi1> {ft.input = "mask", ft.constant}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}constants.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}@forward needs an input that is no constant, whose first dimension is the batch
// CHECK-NOT: {{.}}

//--- value.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}, %m: tensor<4xi32> {ft.input = "order", ft.constant = dense<1> : tensor<3xi32>}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}value.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}input 'order' is 'tensor<4xi32>', which its value is not; expected ft.constant alone, for data to fill it, or ft.constant = dense<...> : 'tensor<4xi32>'
// CHECK-NOT: {{.}}

//--- attribute.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x", ft.constants}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}attribute.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}unknown attribute of an argument 'ft.constants', did you mean 'ft.constant'?
// CHECK-NOT: {{.}}

//--- bf16.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xbf16> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %r = ft.relu %x : tensor<2x4xbf16>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}bf16.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}input 'x' is bf16, which ft.relu cannot read; make it f32 first: ft.copy %x : 'tensor<2x4xbf16>' -> 'tensor<2x4xf32>'
// CHECK-NOT: {{.}}

//--- output.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss, %loss : tensor<f32>, tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}output.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}result 2 of @forward has no name, {ft.output = "..."}; only the loss has none
// CHECK-NOT: {{.}}

//--- logits.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}) -> (tensor<f32>, tensor<2x4xf32> {ft.output = "logits"}) {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss, %x : tensor<f32>, tensor<2x4xf32>
  }
}
// CHECK: {{^}}{{.*}}logits.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}output 'logits' is 'tensor<2x4xf32>'; expected tensor<f32>, a mean over the batch, which evaluation reports
// CHECK-NOT: {{.}}

//--- loss.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}) -> (tensor<f32> {ft.output = "loss"}) {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}loss.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}the first result of @forward is the loss, which has no ft.output
// CHECK-NOT: {{.}}

//--- same.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}) -> (tensor<f32>, tensor<f32> {ft.output = "x"}) {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss, %loss : tensor<f32>, tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}same.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}two inputs or outputs are called 'x'
// CHECK-NOT: {{.}}

//--- length.mlir
module attributes {ft.seq_len = 4 : i64} {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}length.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}'ft.seq_len' is given, but no input of @forward has sequences of tokens
// CHECK-NOT: {{.}}

//--- large.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4611686018427387904xf32> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: {{^}}{{.*}}large.mlir:{{[0-9]+:[0-9]+}}: error: an argument of 'tensor<2x4611686018427387904xf32>' is larger than any memory
// CHECK-NOT: {{.}}

//--- program.mlir
module {
  ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.1>
  // CHECK: program.mlir:[[@LINE+1]]:3: error: @eval_step is what the compiler calls one of its programs; give it another name
  func.func private @eval_step(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ft.composite} {
    %y = ft.neg %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @w : tensor<4xf32>
    %y = ft.call @eval_step(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %loss = ft.reduce "sum" %y over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

//--- parameter.mlir
module {
  // CHECK: parameter.mlir:[[@LINE+1]]:3: error: @init is what the compiler calls one of its programs; give it another name
  ft.parameter @init : tensor<4xf32> = #ft.init<normal, 0.1>
  func.func @forward(%x: tensor<2x4xf32> {ft.input = "x"}) -> tensor<f32> {
    %w = ft.get @init : tensor<4xf32>
    %loss = ft.reduce "sum" %w over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
