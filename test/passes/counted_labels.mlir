// RUN: ft-opt %s --ft-weigh-loss | FileCheck %s

// Labels that the model shifts: the last of each sequence has none after it, whatever the data says.

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// CHECK: ft.count_targets %{{.*}} of 6 {layer = "head"} : (tensor<2x4xi32>)
func.func @forward(%tokens: tensor<2x4xi32> {ft.input = "tokens"}, %labels: tensor<2x4xi32> {ft.input = "labels"}) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<2x4xi32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
  %longer = ft.pad %labels at [0, 0] : tensor<2x4xi32> -> tensor<2x5xi32>
  %place = ft.iota : tensor<5xi32>
  %row = ft.reshape %place : tensor<5xi32> -> tensor<1x5xi32>
  %last = ft.fill 4.0 : tensor<f32>
  %end = ft.convert %last : tensor<f32> -> tensor<i32>
  %isBefore = ft.lt %row, %end : tensor<1x5xi32>, tensor<i32>
  %before = ft.broadcast %isBefore : tensor<1x5xi1> -> tensor<2x5xi1>
  %none = ft.fill -100.0 : tensor<f32>
  %leftOut = ft.convert %none : tensor<f32> -> tensor<i32>
  %padded = ft.select %before, %longer, %leftOut : tensor<2x5xi1>, tensor<2x5xi32>, tensor<i32>
  %shifted = ft.slice %padded at [0, 1] : tensor<2x5xi32> -> tensor<2x4xi32>
  %loss = ft.cross_entropy %x, %shifted {layer = "head"} : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
