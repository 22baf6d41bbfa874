// RUN: ft-opt %s --ft-weigh-loss | FileCheck %s

// The same of a batch whose labels have no room in memory: they are looked at by rows that are alike.

ft.parameter @w : tensor<16x8xf32> = #ft.init<normal, 0.02> {layer = "head"}

// CHECK: ft.count_targets %{{.*}} of 70000000 {layer = "head"} : (tensor<10000000x8xi32>)
func.func @forward(%tokens: tensor<10000000x8xi32> {ft.input = "tokens"}, %labels: tensor<10000000x8xi32> {ft.input = "labels"}) -> tensor<f32> {
  %w = ft.get @w : tensor<16x8xf32>
  %x = ft.embedding %tokens, %w {layer = "head"} : (tensor<10000000x8xi32>, tensor<16x8xf32>) -> tensor<10000000x8x8xf32>
  %longer = ft.pad %labels at [0, 0] : tensor<10000000x8xi32> -> tensor<10000000x9xi32>
  %place = ft.iota : tensor<9xi32>
  %row = ft.reshape %place : tensor<9xi32> -> tensor<1x9xi32>
  %last = ft.fill 8.0 : tensor<f32>
  %end = ft.convert %last : tensor<f32> -> tensor<i32>
  %isBefore = ft.lt %row, %end : tensor<1x9xi32>, tensor<i32>
  %before = ft.broadcast %isBefore : tensor<1x9xi1> -> tensor<10000000x9xi1>
  %none = ft.fill -100.0 : tensor<f32>
  %leftOut = ft.convert %none : tensor<f32> -> tensor<i32>
  %padded = ft.select %before, %longer, %leftOut : tensor<10000000x9xi1>, tensor<10000000x9xi32>, tensor<i32>
  %shifted = ft.slice %padded at [0, 1] : tensor<10000000x9xi32> -> tensor<10000000x8xi32>
  %loss = ft.cross_entropy %x, %shifted {layer = "head"} : (tensor<10000000x8x8xf32>, tensor<10000000x8xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}
