// RUN: ft-opt %s --ft-form-clusters | FileCheck %s
// Rows of 128 columns that are reduced may be computed on in pieces of 64, and parts of other sizes in pieces
// that all of them have some number of: a norm before a rotary embedding, and one that turns a part of a head.

// CHECK-LABEL: @train_step
// CHECK-SAME: (%[[X:.*]]: tensor<6x128xf32>, %[[TABLE:.*]]: tensor<6x64xf32>, %[[Y:.*]]: tensor<6x20xf32>, %[[Z:.*]]: tensor<6x5xf32>)
// CHECK-NEXT: %[[NORMED:.*]]:2 = ft.cluster @[[NORM:[^ (]*]](%[[X]], %[[TABLE]])
// CHECK-NEXT: %[[PARTS:.*]] = ft.cluster @[[PARTLY:[^ (]*]](%[[Y]], %[[Z]])
// CHECK-NEXT: return %[[NORMED]]#0, %[[NORMED]]#1, %[[PARTS]]
func.func @train_step(%x: tensor<6x128xf32>, %table: tensor<6x64xf32>, %y: tensor<6x20xf32>, %z: tensor<6x5xf32>) -> (tensor<6x128xf32>, tensor<128xf32>, tensor<6x25xf32>) {
  %square = ft.mul %x, %x {phase = "forward"} : tensor<6x128xf32>, tensor<6x128xf32>
  %sum = ft.reduce "sum" %square over [1] {phase = "forward"} : tensor<6x128xf32> -> tensor<6xf32>
  %root = ft.rsqrt %sum {phase = "forward"} : tensor<6xf32>
  %column = ft.reshape %root {phase = "forward"} : tensor<6xf32> -> tensor<6x1xf32>
  %each = ft.broadcast %column {phase = "forward"} : tensor<6x1xf32> -> tensor<6x128xf32>
  %normed = ft.mul %x, %each {phase = "forward"} : tensor<6x128xf32>, tensor<6x128xf32>
  %low, %high = ft.split %normed {phase = "forward"} : tensor<6x128xf32> -> tensor<6x64xf32>, tensor<6x64xf32>
  %a = ft.mul %low, %table {phase = "forward"} : tensor<6x64xf32>, tensor<6x64xf32>
  %b = ft.sub %high, %table {phase = "forward"} : tensor<6x64xf32>, tensor<6x64xf32>
  %turned = ft.concat %a, %b {phase = "forward"} : tensor<6x64xf32>, tensor<6x64xf32> -> tensor<6x128xf32>
  %sums = ft.reduce "sum" %turned over [0] {phase = "forward"} : tensor<6x128xf32> -> tensor<128xf32>
  %p, %q = ft.split %y {phase = "forward"} : tensor<6x20xf32> -> tensor<6x5xf32>, tensor<6x15xf32>
  %r = ft.mul %p, %z {phase = "forward"} : tensor<6x5xf32>, tensor<6x5xf32>
  %s = ft.add %p, %z {phase = "forward"} : tensor<6x5xf32>, tensor<6x5xf32>
  %joined = ft.concat %r, %s, %q {phase = "forward"} : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x15xf32> -> tensor<6x25xf32>
  return %turned, %sums, %joined : tensor<6x128xf32>, tensor<128xf32>, tensor<6x25xf32>
}

// What is needed at two places is computed once, for all that a number a row or a sum over rows goes with it.
// CHECK-LABEL: func.func @eval_step
// CHECK: %[[BENT:.*]] = ft.cluster
// CHECK-NEXT: ft.cluster @{{.*}}(%[[BENT]])
// CHECK-NEXT: %[[WIDE:.*]] = ft.cluster
// CHECK-NEXT: ft.cluster @{{.*}}(%[[WIDE]])
// CHECK-NEXT: return
func.func @eval_step(%x: tensor<8x16xf32>, %y: tensor<8x128xf32>) -> (tensor<8x16xf32>, tensor<2x16xf32>, tensor<8x128xf32>, tensor<128xf32>) {
  %t = ft.tanh %x {phase = "forward"} : tensor<8x16xf32>
  %part = ft.slice %t at [6, 0] {phase = "forward"} : tensor<8x16xf32> -> tensor<2x16xf32>
  %sin = ft.sin %part {phase = "forward"} : tensor<2x16xf32>
  %u = ft.tanh %y {phase = "forward"} : tensor<8x128xf32>
  %a = ft.slice %u at [0, 0] {phase = "forward"} : tensor<8x128xf32> -> tensor<8x64xf32>
  %b = ft.slice %u at [0, 32] {phase = "forward"} : tensor<8x128xf32> -> tensor<8x64xf32>
  %c = ft.slice %u at [0, 64] {phase = "forward"} : tensor<8x128xf32> -> tensor<8x64xf32>
  %m = ft.mul %a, %b {phase = "forward"} : tensor<8x64xf32>, tensor<8x64xf32>
  %o = ft.concat %m, %c axis 1 {phase = "forward"} : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x128xf32>
  %s = ft.reduce "sum" %o over [0] {phase = "forward"} : tensor<8x128xf32> -> tensor<128xf32>
  return %t, %sin, %o, %s : tensor<8x16xf32>, tensor<2x16xf32>, tensor<8x128xf32>, tensor<128xf32>
}
