// RUN: ft-opt %s --ft-form-clusters | FileCheck %s
// Moves of moves become one, and what is made wider is moved before it.

// CHECK-LABEL: @train_step
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xbf16>, %[[Y:.*]]: tensor<4x2xf32>, %[[Z:.*]]: tensor<4x3xf32>)
// CHECK-NEXT: %[[TURNED:.*]] = ft.transpose %[[X]] [1, 0] {{.*}} : tensor<4x6xbf16>
// CHECK-NEXT: ft.cluster @[[WIDENED:.*]](%[[TURNED]])
// CHECK-NEXT: ft.cluster @[[RESHAPED:.*]](%[[X]])
// CHECK-NEXT: ft.cluster @[[SLICED:.*]](%[[Z]])
// CHECK-NEXT: %[[JOINED:.*]] = ft.concat %[[Y]], %[[Z]], %[[Z]]
// CHECK-NEXT: ft.cluster @{{.*}}(%[[JOINED]])
// CHECK-NEXT: return
func.func @train_step(%x: tensor<4x6xbf16>, %y: tensor<4x2xf32>, %z: tensor<4x3xf32>) -> (tensor<6x4xf32>, tensor<2x12xf32>, tensor<2x2xf32>, tensor<4x8xf32>) {
  %wide = ft.copy %x {phase = "forward"} : tensor<4x6xbf16> -> tensor<4x6xf32>
  %turned = ft.transpose %wide [1, 0] {phase = "forward"} : tensor<4x6xf32> -> tensor<6x4xf32>
  %e = ft.exp %turned {phase = "forward"} : tensor<6x4xf32>
  %r = ft.reshape %wide {phase = "forward"} : tensor<4x6xf32> -> tensor<24xf32>
  %rr = ft.reshape %r {phase = "forward"} : tensor<24xf32> -> tensor<2x12xf32>
  %n = ft.neg %rr {phase = "forward"} : tensor<2x12xf32>
  %s = ft.slice %z at [1, 0] {phase = "forward"} : tensor<4x3xf32> -> tensor<3x3xf32>
  %ss = ft.slice %s at [1, 1] {phase = "forward"} : tensor<3x3xf32> -> tensor<2x2xf32>
  %es = ft.exp %ss {phase = "forward"} : tensor<2x2xf32>
  %c = ft.concat %y, %z {phase = "forward"} : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<4x5xf32>
  %cc = ft.concat %c, %z {phase = "forward"} : tensor<4x5xf32>, tensor<4x3xf32> -> tensor<4x8xf32>
  %ec = ft.exp %cc {phase = "forward"} : tensor<4x8xf32>
  return %e, %n, %es, %ec : tensor<6x4xf32>, tensor<2x12xf32>, tensor<2x2xf32>, tensor<4x8xf32>
}

// CHECK: @[[WIDENED]](%{{.*}}: tensor<6x4xbf16>)
// CHECK-NEXT: ft.copy
// CHECK-NEXT: ft.exp
// CHECK: @[[RESHAPED]](%[[IN:.*]]: tensor<4x6xbf16>)
// CHECK-NEXT: %[[MOVED:.*]] = ft.reshape %[[IN]] : tensor<4x6xbf16> -> tensor<2x12xbf16>
// CHECK-NEXT: ft.copy %[[MOVED]]
// CHECK-NEXT: ft.neg
// CHECK: @[[SLICED]](
// CHECK-NEXT: ft.slice %{{.*}} at [2, 1] : tensor<4x3xf32> -> tensor<2x2xf32>
// CHECK-NEXT: ft.exp
