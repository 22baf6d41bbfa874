// RUN: ft-opt %s --ft-insert-collectives=strategy=full_shard --ft-verify-collectives | FileCheck %s
// RUN: ft-opt %s --ft-insert-collectives=strategy=full_shard --ft-verify-collectives | grep -c "ft.gather .*@layers" | FileCheck %s --check-prefix=SPANS
// RUN: ft-opt %s --ft-insert-collectives=strategy=full_shard --ft-verify-collectives | grep -c "ft.gather .*@table" | FileCheck %s --check-prefix=TIED

// A unit of several layers is gathered once for all of them, in forward and again in backward, even where a layer without
// parameters lies between. The table is used at both ends of forward, with the layers between: two gathers there, the later of
// which serves the begin of backward, and one at its end.

// SPANS: {{^2$}}
// TIED: {{^3$}}
ft.unit @table {elements = 1024 : i64}
ft.unit @layers {elements = 2048 : i64}
ft.parameter @e : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "embed", offset = 0 : i64, unit = @table}
ft.parameter @w0 : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "h.0", offset = 0 : i64, unit = @layers}
ft.parameter @w1 : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "h.1", offset = 1024 : i64, unit = @layers}

// CHECK-LABEL: func.func @train_step
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  %e = ft.get @e : tensor<4xf32>
  %w0 = ft.get @w0 : tensor<4xf32>
  %w1 = ft.get @w1 : tensor<4xf32>
  // CHECK: %[[FIRST:.*]] = ft.gather {{.*}}@table
  // CHECK: ft.release %[[FIRST]] {layer = "embed", phase = "forward"}
  %x = ft.scale %e, 2.0 {layer = "embed", phase = "forward"} : tensor<4xf32>
  // CHECK: %[[LAYERS:.*]] = ft.gather {{.*}}@layers
  // CHECK: ft.view %[[LAYERS]][@w0]
  // CHECK: ft.view %[[LAYERS]][@w1]
  // CHECK-NOT: ft.release
  // CHECK: ft.mul {{.*}}layer = "h.1", phase = "forward"
  // CHECK-NEXT: ft.release %[[LAYERS]] {layer = "h.1", phase = "forward"}
  %y = ft.mul %x, %w0 {layer = "h.0", phase = "forward"} : tensor<4xf32>, tensor<4xf32>
  %d = ft.scale %y, 0.5 {layer = "between", phase = "forward"} : tensor<4xf32>
  %z = ft.mul %d, %w1 {layer = "h.1", phase = "forward"} : tensor<4xf32>, tensor<4xf32>
  // CHECK: %[[TURN:.*]] = ft.gather {{.*}}@table
  %l = ft.mul %z, %e {layer = "embed", phase = "forward"} : tensor<4xf32>, tensor<4xf32>
  %loss = ft.reduce "sum" %l over [0] {layer = "embed", phase = "forward"} : tensor<4xf32> -> tensor<f32>
  // CHECK: ft.release %[[TURN]] {layer = "embed", phase = "backward"}
  %dz = ft.scale %e, 3.0 {layer = "embed", phase = "backward"} : tensor<4xf32>
  // CHECK: %[[AGAIN:.*]] = ft.gather {{.*}} {layer = "h.1", phase = "backward"} : {{.*}}@layers
  // CHECK: ft.release %[[AGAIN]] {layer = "h.0", phase = "backward"}
  %dy = ft.mul %dz, %w1 {layer = "h.1", phase = "backward"} : tensor<4xf32>, tensor<4xf32>
  %dx = ft.mul %dy, %w0 {layer = "h.0", phase = "backward"} : tensor<4xf32>, tensor<4xf32>
  // CHECK: %[[LAST:.*]] = ft.gather {{.*}} {layer = "embed", phase = "backward"} : {{.*}}@table
  %de = ft.mul %dx, %e {layer = "embed", phase = "backward"} : tensor<4xf32>, tensor<4xf32>
  %gt = ft.pack %de at [@e] {layer = "embed", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@table, f32>
  %gl = ft.pack %dx, %dy at [@w0, @w1] {layer = "h.0", phase = "backward"} : (tensor<4xf32>, tensor<4xf32>) -> !ft.flat<@layers, f32>
  return %loss : tensor<f32>
}
