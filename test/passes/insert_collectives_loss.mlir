// RUN: ft-opt %s --ft-insert-collectives=strategy=full_shard --ft-verify-collectives | FileCheck %s

// The mean over ranks is made of the sum of all losses; a derivative that reads the loss reads its rank's.

ft.unit @u {elements = 1024 : i64}
ft.parameter @w : tensor<4xf32> = #ft.init<normal, 0.02> {layer = "l", offset = 0 : i64, unit = @u}

// CHECK-LABEL: func.func @train_step
func.func @train_step() -> (tensor<f32>, tensor<f32>) {
  %w = ft.get @w : tensor<4xf32>
  %s = ft.reduce "sum" %w over [0] {layer = "l", phase = "forward"} : tensor<4xf32> -> tensor<f32>
  // CHECK: %[[LOSS:.*]] = ft.sqrt
  // CHECK-NEXT: %[[SUM:.*]] = ft.all_reduce %[[LOSS]] over world {phase = "forward"}
  // CHECK: ft.div %{{.*}}, %[[LOSS]]
  // CHECK: %[[MEAN:.*]] = ft.mul %[[SUM]]
  // CHECK: return %[[MEAN]]
  %loss = ft.sqrt %s {layer = "l", phase = "forward"} : tensor<f32>
  %half = ft.fill 0.5 {layer = "l", phase = "backward"} : tensor<f32>
  %d = ft.div %half, %loss {layer = "l", phase = "backward"} : tensor<f32>, tensor<f32>
  %g = ft.broadcast %d {layer = "l", phase = "backward"} : tensor<f32> -> tensor<4xf32>
  %flat = ft.pack %g at [@w] {layer = "l", phase = "backward"} : (tensor<4xf32>) -> !ft.flat<@u, f32>
  %n = ft.input "inverse_ranks" : tensor<f32>
  %mean = ft.mul %loss, %n {phase = "optimizer"} : tensor<f32>, tensor<f32>
  %sum = ft.sum_squares %flat times %n {phase = "optimizer"} : (!ft.flat<@u, f32>, tensor<f32>) -> tensor<21xi64>
  %norm, %c = ft.clip_coefficient %sum {max_norm = 1.0, phase = "optimizer"} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
  %lr = ft.input "lr" : tensor<f32>
  %step = ft.input "step" : tensor<i64>
  %scalars = ft.update_scalars %c, %lr, %step, %n {formulas = "clip * inverse_ranks", weight_decay = 0.1} : (tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>) -> tensor<2x1xf32>
  ft.update @u by @sgd(%flat, %scalars) states [] : !ft.flat<@u, f32>, tensor<2x1xf32>
  return %mean, %norm : tensor<f32>, tensor<f32>
}
func.func private @sgd(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>) -> tensor<1024xf32> attributes {ft.update} {
  %step = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %next = ft.sub %p, %step : tensor<1024xf32>
  return %next : tensor<1024xf32>
}
