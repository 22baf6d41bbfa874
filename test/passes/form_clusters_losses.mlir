// RUN: ft-opt %s --ft-form-clusters | FileCheck %s
// The loss of rows: what is said to derivatives alone is gone, numbers of columns are made where they are read, and the
// logarithm of a row's sum is with the sum over rows, where a vector has many rows.

// CHECK-LABEL: @train_step
func.func @train_step(%x: tensor<4x8xf32>, %t: tensor<4xi32>, %n: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[ROWS:.*]]:2 = ft.cluster @[[OF_ROWS:.*]](%arg0, %arg1)
  // CHECK-NEXT: %[[LOSS:.*]] = ft.cluster @[[OF_ALL:.*]](%arg1, %[[ROWS]]#0, %[[ROWS]]#1, %arg2)
  // CHECK-NEXT: return %[[LOSS]]
  %zero = ft.scale %t, 0.0 {phase = "forward"} : tensor<4xi32>
  %counts = ft.ge %t, %zero {phase = "forward"} : tensor<4xi32>
  %c1 = ft.reshape %counts {phase = "forward"} : tensor<4xi1> -> tensor<4x1xi1>
  %c2 = ft.broadcast %c1 {phase = "forward"} : tensor<4x1xi1> -> tensor<4x8xi1>
  %stopped = ft.stop_gradient %x {phase = "forward"} : tensor<4x8xf32>
  %chosen = ft.select %c2, %x, %stopped {phase = "forward"} : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>
  %square = ft.square %chosen {phase = "forward"} : tensor<4x8xf32>
  %e = ft.exp %square {phase = "forward"} : tensor<4x8xf32>
  %sum = ft.reduce "sum" %e over [1] {phase = "forward"} : tensor<4x8xf32> -> tensor<4xf32>
  %columns = ft.iota {phase = "forward"} : tensor<8xi32>
  %t1 = ft.reshape %t {phase = "forward"} : tensor<4xi32> -> tensor<4x1xi32>
  %t2 = ft.broadcast %t1 {phase = "forward"} : tensor<4x1xi32> -> tensor<4x8xi32>
  %is = ft.eq %t2, %columns {phase = "forward"} : tensor<4x8xi32>, tensor<8xi32>
  %none = ft.fill 0.0 {phase = "forward"} : tensor<f32>
  %picked = ft.select %is, %square, %none {phase = "forward"} : tensor<4x8xi1>, tensor<4x8xf32>, tensor<f32>
  %at = ft.reduce "sum" %picked over [1] {phase = "forward"} : tensor<4x8xf32> -> tensor<4xf32>
  %log = ft.log %sum {phase = "forward"} : tensor<4xf32>
  %loss = ft.sub %log, %at {phase = "forward"} : tensor<4xf32>
  %counted = ft.select %counts, %loss, %none {phase = "forward"} : tensor<4xi1>, tensor<4xf32>, tensor<f32>
  %total = ft.reduce "sum" %counted over [0] {phase = "forward"} : tensor<4xf32> -> tensor<f32>
  %mean = ft.div %total, %n {phase = "forward"} : tensor<f32>
  return %mean : tensor<f32>
}

// A result of its own, the logarithm is taken where the sum is.
// CHECK-LABEL: @eval_step
func.func @eval_step(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: ft.cluster
  // CHECK-NEXT: return
  %sum = ft.reduce "sum" %x over [1] {phase = "forward"} : tensor<4x8xf32> -> tensor<4xf32>
  %log = ft.log %sum {phase = "forward"} : tensor<4xf32>
  return %log : tensor<4xf32>
}

// CHECK: func.func private @[[OF_ROWS]](
// CHECK-NOT: ft.stop_gradient
// CHECK-NOT: ft.log
// CHECK: ft.iota
// CHECK: func.func private @[[OF_ALL]](
// CHECK: ft.log
// CHECK: ft.reduce "sum"
