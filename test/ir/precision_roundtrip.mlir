// RUN: ft-opt %s | ft-opt | FileCheck %s

// Activations in one type, gradients of parameters in another, statistics and scalars in f32.

ft.unit @u {elements = 1024 : i64}
ft.parameter @p : tensor<8xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @u}

// CHECK-LABEL: @forward
func.func @forward(%x: tensor<2x3x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xbf16>, %ids: tensor<2x3xi32>, %rng: tensor<3xi64>) -> tensor<f32> {
  // CHECK: ft.matmul {{.*}} : (tensor<2x3x8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>) -> tensor<2x3x8xbf16>
  %y = ft.matmul %x, %w bias %b : (tensor<2x3x8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>) -> tensor<2x3x8xbf16>
  // CHECK: ft.dropout {{.*}} rate 0.1 stream 2 : tensor<2x3x8xbf16>, tensor<3xi64>
  %z = ft.dropout %y, %rng rate 0.1 stream 2 : tensor<2x3x8xbf16>, tensor<3xi64>
  // CHECK: ft.attention {{.*}} -> (tensor<2x3x8xbf16>, tensor<2x2x3xf32>)
  %out, %lse = ft.attention %z, %z, %z heads 2 kv_heads 2 : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x2x3xf32>)
  // CHECK: ft.copy %{{.*}} : tensor<2x3x8xbf16> -> tensor<2x3x8xf16>
  %half = ft.copy %out : tensor<2x3x8xbf16> -> tensor<2x3x8xf16>
  // CHECK: ft.copy %{{.*}} : tensor<2x3x8xf16>{{$}}
  %same = ft.copy %half : tensor<2x3x8xf16>
  // CHECK: ft.cross_entropy {{.*}} : (tensor<2x3x8xf16>, tensor<2x3xi32>) -> tensor<f32>
  %loss = ft.cross_entropy %same, %ids : (tensor<2x3x8xf16>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: @backward
func.func @backward(%x: tensor<2x3x8xbf16>, %n: tensor<8xbf16>, %table: tensor<16x8xbf16>, %ids: tensor<2x3xi32>, %scaler: tensor<3xf32>) {
  // CHECK: ft.loss_scale %{{.*}} factor 0.5 : (tensor<3xf32>) -> tensor<f32>
  %scale = ft.loss_scale %scaler factor 0.5 : (tensor<3xf32>) -> tensor<f32>
  // CHECK: ft.linear_cross_entropy_grad {{.*}} -> (tensor<2x3x8xbf16>, tensor<16x8xf32>)
  %dx, %dt0 = ft.linear_cross_entropy_grad %scale, %x, %table, %ids : (tensor<f32>, tensor<2x3x8xbf16>, tensor<16x8xbf16>, tensor<2x3xi32>) -> (tensor<2x3x8xbf16>, tensor<16x8xf32>)
  // CHECK: ft.linear_cross_entropy_loss_grad {{.*}} dloss 2.0 times %{{.*}} : {{.*}} -> (tensor<f32>, tensor<2x3x8xbf16>, tensor<16x8xf16>)
  %l, %dx2, %dt2 = ft.linear_cross_entropy_loss_grad %x, %table, %ids dloss 2.0 times %scale : (tensor<2x3x8xbf16>, tensor<16x8xbf16>, tensor<2x3xi32>, tensor<f32>) -> (tensor<f32>, tensor<2x3x8xbf16>, tensor<16x8xf16>)
  // CHECK: ft.embedding_grad {{.*}} : (tensor<2x3xi32>, tensor<2x3x8xbf16>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %dt = ft.embedding_grad %ids, %dx into %dt0 : (tensor<2x3xi32>, tensor<2x3x8xbf16>, tensor<16x8xf32>) -> tensor<16x8xf32>
  // CHECK: ft.matmul {{.*}} transpose_a : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %w0 = ft.fill 0.0 : tensor<8x8xf32>
  %w = ft.matmul %x, %dx into %w0 transpose_a : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: ft.reduce "sum" {{.*}} : tensor<2x3x8xbf16> -> tensor<8xf32>
  %s = ft.reduce "sum" %dx over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xf32>
  // CHECK: ft.pack {{.*}} -> !ft.flat<@u, f32>
  %g = ft.pack %s at [@p] : (tensor<8xf32>) -> !ft.flat<@u, f32>
  return
}

// CHECK-LABEL: @state
func.func @state(%coefficient: tensor<f32>) {
  // CHECK: %[[SCALER:.*]] = ft.input "scaler" : tensor<3xf32>
  %scaler = ft.input "scaler" : tensor<3xf32>
  // CHECK: ft.update_scaler %[[SCALER]], %{{.*}} {{.*}} : tensor<3xf32>, tensor<f32>
  ft.update_scaler %scaler, %coefficient {growth_factor = 2.0, backoff_factor = 0.5, growth_interval = 2000 : i64, hysteresis = 1 : i64, min_scale = 0.0, dynamic = 1 : i64} : tensor<3xf32>, tensor<f32>
  // CHECK: ft.gather {{.*}} : !ft.slice<@u, f32> -> !ft.flat<@u, bf16>
  %s = ft.shard @u : !ft.slice<@u, f32>
  %f = ft.gather %s : !ft.slice<@u, f32> -> !ft.flat<@u, bf16>
  // CHECK: ft.view {{.*}} : !ft.flat<@u, bf16> -> tensor<8xbf16>
  %v = ft.view %f[@p] : !ft.flat<@u, bf16> -> tensor<8xbf16>
  return
}
