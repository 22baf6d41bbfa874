// RUN: ft-opt %s --ft-form-units=persistence-threshold=8 --ft-verify-units | FileCheck %s

// Layers whose names are those of other units: what is frozen, trained or small stays apart, under another name.

// CHECK: ft.unit @block.frozen {elements = 1024 : i64}
// CHECK-NEXT: ft.unit @block.frozen_0 {elements = 1024 : i64}
// CHECK-NEXT: ft.unit @small {elements = 1024 : i64}
// CHECK-NEXT: ft.unit @small_1 {elements = 1024 : i64, small}
// CHECK-NEXT: ft.parameter @frozen {{.*}}unit = @block.frozen}
// CHECK-NEXT: ft.parameter @trained {{.*}}unit = @block.frozen_0}
// CHECK-NEXT: ft.parameter @large {{.*}}unit = @small}
// CHECK-NEXT: ft.parameter @tiny {{.*}}unit = @small_1}
ft.parameter @frozen : tensor<8xf32> = #ft.init<normal, 0.02> {frozen, layer = "block"}
ft.parameter @trained : tensor<8xf32> = #ft.init<normal, 0.02> {layer = "block.frozen"}
ft.parameter @large : tensor<8xf32> = #ft.init<normal, 0.02> {layer = "small"}
ft.parameter @tiny : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "head"}
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  %loss = ft.fill 1.0 : tensor<f32>
  %g8 = ft.fill 1.0 : tensor<8xf32>
  %g4 = ft.fill 1.0 : tensor<4xf32>
  ft.gradient @trained, %g8 : tensor<8xf32>
  ft.gradient @large, %g8 : tensor<8xf32>
  ft.gradient @tiny, %g4 : tensor<4xf32>
  return %loss : tensor<f32>
}
