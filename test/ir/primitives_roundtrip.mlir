// RUN: ft-opt %s | ft-opt | FileCheck %s

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<2x3xf32>, %v: tensor<3xf32>, %s: tensor<f32>, %h: tensor<2x3xbf16>, %i: tensor<2x3xi32>) {
  // CHECK: ft.exp %{{.*}} : tensor<2x3xf32>{{$}}
  %0 = ft.exp %x : tensor<2x3xf32>
  // CHECK: ft.clamp %{{.*}}, -1.0, 2.5 {layer = "l"} : tensor<2x3xf32>{{$}}
  %1 = ft.clamp %x, -1.0, 2.5 {layer = "l"} : tensor<2x3xf32>
  // CHECK: ft.pow %{{.*}}, 0.5 : tensor<2x3xf32>{{$}}
  %2 = ft.pow %x, 0.5 : tensor<2x3xf32>
  // One type for all operands may stand for all of them.
  // CHECK: ft.maximum %{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<2x3xf32>{{$}}
  %3 = ft.maximum %x, %0 : tensor<2x3xf32>
  // Either operand may be repeated.
  // CHECK: ft.sub %{{.*}}, %{{.*}} : tensor<3xf32>, tensor<2x3xf32>{{$}}
  %4 = ft.sub %v, %x : tensor<3xf32>, tensor<2x3xf32>
  // CHECK: ft.lt %{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<f32>{{$}}
  %5 = ft.lt %x, %s : tensor<2x3xf32>, tensor<f32>
  // CHECK: ft.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3xi1>, tensor<3xf32>, tensor<2x3xf32>{{$}}
  %6 = ft.select %5, %v, %x : tensor<2x3xi1>, tensor<3xf32>, tensor<2x3xf32>
  // CHECK: ft.and %{{.*}}, %{{.*}} : tensor<2x3xi1>, tensor<2x3xi1>{{$}}
  %7 = ft.and %5, %5 : tensor<2x3xi1>
  // Floats may differ; what the result is then is said.
  // CHECK: ft.mul %{{.*}}, %{{.*}} : tensor<2x3xbf16>, tensor<2x3xf32> -> tensor<2x3xf32>{{$}}
  %8 = ft.mul %h, %x : tensor<2x3xbf16>, tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK: ft.remainder %{{.*}}, 4.0 : tensor<2x3xi32>{{$}}
  %9 = ft.remainder %i, 4.0 : tensor<2x3xi32>
  return
}

// CHECK-LABEL: func.func @by_integers
func.func @by_integers(%x: tensor<2x8xf32>, %w: tensor<3x8x5xf32>, %tokens: tensor<2xi32>) {
  // CHECK: ft.argsort %{{.*}} descending : tensor<2x8xf32> -> tensor<2x2xi32>
  %0 = ft.argsort %x descending : tensor<2x8xf32> -> tensor<2x2xi32>
  // CHECK: ft.gather_elements %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<2x2xi32> -> tensor<2x2xf32>
  %1 = ft.gather_elements %x, %0 : tensor<2x8xf32>, tensor<2x2xi32> -> tensor<2x2xf32>
  // CHECK: ft.scatter_add_elements %{{.*}}, %{{.*}} : tensor<2x2xf32>, tensor<2x2xi32> -> tensor<2x8xf32>
  %2 = ft.scatter_add_elements %1, %0 : tensor<2x2xf32>, tensor<2x2xi32> -> tensor<2x8xf32>
  // CHECK: ft.histogram %{{.*}} : tensor<2xi32> -> tensor<3xi32>
  %3 = ft.histogram %tokens : tensor<2xi32> -> tensor<3xi32>
  // CHECK: ft.cumsum %{{.*}} reverse : tensor<3xi32> -> tensor<3xi32>
  %4 = ft.cumsum %3 reverse : tensor<3xi32> -> tensor<3xi32>
  // CHECK: ft.grouped_dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<3x8x5xf32>, tensor<3xi32> -> tensor<2x5xf32>
  %5 = ft.grouped_dot %2, %w, %4 : tensor<2x8xf32>, tensor<3x8x5xf32>, tensor<3xi32> -> tensor<2x5xf32>
  // CHECK: ft.grouped_dot_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8xf32>, tensor<2x5xf32>, tensor<3xi32>) -> tensor<3x8x5xf32>
  %6 = ft.grouped_dot_grad %x, %5, %4 : (tensor<2x8xf32>, tensor<2x5xf32>, tensor<3xi32>) -> tensor<3x8x5xf32>
  // CHECK: ft.grouped_dot_grad %{{.*}} into %{{.*}} : (tensor<2x8xf32>, tensor<2x5xf32>, tensor<3xi32>, tensor<3x8x5xf32>) -> tensor<3x8x5xf32>
  %7 = ft.grouped_dot_grad %x, %5, %4 into %6 : (tensor<2x8xf32>, tensor<2x5xf32>, tensor<3xi32>, tensor<3x8x5xf32>) -> tensor<3x8x5xf32>
  return
}

// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<2x3x4xf32>, %i: tensor<2x3xi32>, %row: tensor<3x1xf32>) {
  // CHECK: ft.convert %{{.*}} : tensor<2x3xi32> -> tensor<2x3xf32>
  %0 = ft.convert %i : tensor<2x3xi32> -> tensor<2x3xf32>
  // CHECK: ft.broadcast %{{.*}} : tensor<3x1xf32> -> tensor<2x3x4xf32>
  %1 = ft.broadcast %row : tensor<3x1xf32> -> tensor<2x3x4xf32>
  // CHECK: ft.reshape %{{.*}} : tensor<2x3x4xf32> -> tensor<1x6x1x4xf32>
  %2 = ft.reshape %x : tensor<2x3x4xf32> -> tensor<1x6x1x4xf32>
  // CHECK: ft.transpose %{{.*}} [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %3 = ft.transpose %x [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  // CHECK: ft.slice %{{.*}} at [0, 1, 2] : tensor<2x3x4xf32> -> tensor<2x1x2xf32>
  %4 = ft.slice %x at [0, 1, 2] : tensor<2x3x4xf32> -> tensor<2x1x2xf32>
  // CHECK: ft.pad %{{.*}} at [0, 1, 2] : tensor<2x1x2xf32> -> tensor<2x3x4xf32>
  %5 = ft.pad %4 at [0, 1, 2] : tensor<2x1x2xf32> -> tensor<2x3x4xf32>
  // CHECK: ft.concat %{{.*}}, %{{.*}} axis 1 : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x6x4xf32>
  %6 = ft.concat %x, %5 axis 1 : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x6x4xf32>
  // CHECK: ft.reduce "max" %{{.*}} over [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  %7 = ft.reduce "max" %x over [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  // CHECK: ft.dot %{{.*}}, %{{.*}} transpose_b : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x3xf32>
  %8 = ft.dot %x, %5 transpose_b : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x3xf32>
  return
}
