// RUN: ftc compile %s --strategy=full_shard --dump=parse | FileCheck %s --check-prefix=INPUTS
// RUN: ftc compile %s --strategy=full_shard --mixed-precision=bf16 --dump=precision | FileCheck %s
// RUN: ftc compile %s --strategy=full_shard -o %t.plan
// RUN: ftc dump %t.plan | FileCheck %s --check-prefix=PLAN
// RUN: ftc verify %t.plan
// RUN: sed s/5,/9,/ %s > %t.mlir
// RUN: not ftc compile %t.mlir --strategy=full_shard -o %t.plan 2>&1 | FileCheck %s --check-prefix=BEYOND

// Constants that the model says itself. Which rows they choose is proved with the plan; data has none of them.

// INPUTS: ids_below = 6 : i64, {{.*}}name = "order", type = tensor<3xi32>, value = dense<[0, 5, 2]> : tensor<3xi32>}
// Ids that were chosen by themselves are computed: what they were says nothing of what they are.
// INPUTS: ids_below = 0 : i64, {{.*}}name = "labels", type = tensor<2x3xi32>}

// Composites read such floats as they are, all others read them rounded once.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[SHIFT:[a-z0-9]+]]: tensor<8xf32> {ft.constant = dense<{{.*}}> : tensor<8xf32>, ft.input = "shift"}
// CHECK: ft.call @turned(%[[SHIFT]]){{.*}} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK: ft.copy %[[SHIFT]]{{.*}} : tensor<8xf32> -> tensor<8xbf16>

// PLAN: order: i32 [3], filled by value, below 6
// PLAN: shift: f32 [8], filled by value
// PLAN: seen: i1 [2, 2], filled by value

// BEYOND: input 'order': its value has 9, outside of 0 ... 5

module {
  ft.parameter @w : tensor<6x8xf32> = #ft.init<normal, 0.1>
  func.func private @turned(%shift: tensor<8xf32>) -> (tensor<8xf32> {ft.statistic}) attributes {ft.composite} {
    %c = ft.cos %shift : tensor<8xf32>
    return %c : tensor<8xf32>
  }
  func.func @forward(%x: tensor<2x3x8xf32> {ft.input = "x"}, %order: tensor<3xi32> {ft.input = "order", ft.constant = dense<[0, 5, 2]> : tensor<3xi32>},
                     %shift: tensor<8xf32> {ft.input = "shift", ft.constant = dense<0.25> : tensor<8xf32>}, %labels: tensor<2x3xi32> {ft.input = "labels"},
                     %seen: tensor<2x2xi1> {ft.input = "seen", ft.constant = dense<[[true, false], [true, true]]> : tensor<2x2xi1>}) -> tensor<f32> {
    %w = ft.get @w : tensor<6x8xf32>
    %rows = ft.embedding %order, %w : (tensor<3xi32>, tensor<6x8xf32>) -> tensor<3x8xf32>
    %c = ft.call @turned(%shift) : (tensor<8xf32>) -> tensor<8xf32>
    %a = ft.add %x, %rows : tensor<2x3x8xf32>, tensor<3x8xf32>
    %b = ft.mul %a, %c : tensor<2x3x8xf32>, tensor<8xf32>
    %d = ft.add %b, %shift : tensor<2x3x8xf32>, tensor<8xf32>
    %zero = ft.fill 0.0 : tensor<f32>
    %none = ft.convert %zero : tensor<f32> -> tensor<i32>
    %left = ft.lt %labels, %none : tensor<2x3xi32>, tensor<i32>
    %given = ft.select %left, %none, %labels : tensor<2x3xi1>, tensor<i32>, tensor<2x3xi32>
    %words = ft.embedding %given, %w : (tensor<2x3xi32>, tensor<6x8xf32>) -> tensor<2x3x8xf32>
    %e = ft.mul %d, %words : tensor<2x3x8xf32>, tensor<2x3x8xf32>
    %ones = ft.convert %seen : tensor<2x2xi1> -> tensor<2x2xf32>
    %f = ft.reduce "sum" %ones over [0, 1] : tensor<2x2xf32> -> tensor<f32>
    %g = ft.reduce "sum" %e over [0, 1, 2] : tensor<2x3x8xf32> -> tensor<f32>
    %loss = ft.add %f, %g : tensor<f32>
    return %loss : tensor<f32>
  }
}
