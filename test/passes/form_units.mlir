// RUN: ft-opt %s --ft-form-units | FileCheck %s

// Two layers, one frozen parameter: offsets are multiples of 1024 elements, gradients are packed after the last of each unit.

// CHECK-DAG: ft.unit @embed {elements = 1024 : i64}
// CHECK-DAG: ft.unit @block {elements = 3072 : i64}
// CHECK-DAG: ft.unit @block.frozen {elements = 1024 : i64}
// CHECK-DAG: ft.parameter @table : tensor<8x4xf32> = {{.*}}offset = 0 : i64, unit = @embed
// CHECK-DAG: ft.parameter @w : tensor<40x40xf32> = {{.*}}offset = 0 : i64, unit = @block
// CHECK-DAG: ft.parameter @b : tensor<40xf32> = {{.*}}offset = 2048 : i64, unit = @block
// CHECK-DAG: ft.parameter @still : tensor<4xf32> = {{.*}}unit = @block.frozen
ft.parameter @table : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "embed"}
ft.parameter @w : tensor<40x40xf32> = #ft.init<normal, 0.02> {layer = "block"}
ft.parameter @b : tensor<40xf32> = #ft.init<constant, 0.0> {layer = "block", no_decay}
ft.parameter @still : tensor<4xf32> = #ft.init<constant, 1.0> {frozen, layer = "block"}

// CHECK-LABEL: func.func @train_step
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  // CHECK: %[[LOSS:.*]] = ft.fill 1
  %loss = ft.fill 1.0 : tensor<f32>
  // CHECK: %[[GB:.*]] = ft.fill 2
  %gb = ft.fill 2.0 : tensor<40xf32>
  ft.gradient @b, %gb {layer = "block"} : tensor<40xf32>
  // CHECK: %[[GT:.*]] = ft.fill 3
  %gt = ft.fill 3.0 : tensor<8x4xf32>
  ft.gradient @table, %gt {layer = "embed"} : tensor<8x4xf32>
  // CHECK-NEXT: ft.pack %[[GT]] at [@table] {layer = "embed", phase = "backward"} : {{.*}} -> !ft.flat<@embed, f32>
  // CHECK: %[[GW:.*]] = ft.fill 4
  %gw = ft.fill 4.0 : tensor<40x40xf32>
  ft.gradient @w, %gw {layer = "block"} : tensor<40x40xf32>
  // CHECK-NEXT: ft.pack %[[GW]], %[[GB]] at [@w, @b] {layer = "block", phase = "backward"}
  // CHECK-NOT: ft.gradient
  return %loss : tensor<f32>
}
