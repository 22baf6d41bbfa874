// RUN: ft-opt %s --ft-form-units "--ft-insert-optimizer=optimizer=adafactor" --ft-verify-optimizer | FileCheck %s --check-prefix=UPDATES
// RUN: ft-opt %s --ft-form-units "--ft-insert-optimizer=optimizer=adafactor" "--ft-insert-collectives=strategy=full_shard" --ft-verify-collectives "--ft-apply-precision=param-dtype=fp16 reduce-dtype=fp16" --ft-verify-precision | FileCheck %s --check-prefix=SHARDED
// RUN: ft-opt %s --ft-form-units "--ft-insert-optimizer=optimizer=adafactor scale-parameter=false" | FileCheck %s --check-prefix=UNSCALED
// RUN: ft-opt %s --ft-form-units "--ft-insert-optimizer=optimizer=adafactor" "--ft-insert-collectives=strategy=ddp" --ft-expand-composites --ft-form-updates --ft-form-clusters --ft-lower-to-ftx --ftx-verify-schedule | FileCheck %s --check-prefix=LOWERED
// RUN: not ft-opt %s --ft-form-units "--ft-insert-optimizer=optimizer=adafactor clip-threshold=0" 2>&1 | FileCheck %s --check-prefix=NOLIMIT
// RUN: ft-opt %s --ft-form-units "--ft-insert-optimizer=optimizer=adafactor" | sed '/ft.store_state.*variance/d' | not ft-opt - --ft-verify-optimizer 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// RUN: ft-opt %s --ft-form-units "--ft-insert-optimizer=optimizer=adafactor" | sed 's/into @h "row_var" by rows\(.*\)22xf32/into @h "row_var" by columns\122xf32/' | not ft-opt - --ft-verify-optimizer 2>&1 | FileCheck %s --check-prefix=OTHER

// Adafactor keeps the second moments of rows and columns, and looks at each parameter whole.

// UNWRITTEN: error: 'ft.load_state' op reads a state that one ft.store_state behind it must write
// OTHER: error: 'ft.store_state' op value
// NOLIMIT: error: clip_threshold is 0; adafactor wants 1 or more

ft.parameter @up : tensor<4x6xf32> = #ft.init<normal, 1.0> {layer = "h"}
ft.parameter @bias : tensor<6xf32> = #ft.init<normal, 1.0> {layer = "h", no_decay}
ft.parameter @down : tensor<3x6x4xf32> = #ft.init<normal, 1.0> {layer = "h"}

// UPDATES-LABEL: func.func @train_step
// UPDATES-DAG: %[[N:.*]] = ft.update_scalars {{.*}}formulas = "clip; t^-0.8"
// UPDATES: %[[D:.*]] = ft.update @h by @adafactor.direction({{.*}}) states [] {{.*}} -> !ft.flat<@h, f32>
// UPDATES-DAG: %[[R:.*]] = ft.load_state @h "row_var" by rows {{.*}} : tensor<22xf32>
// UPDATES-DAG: %[[C:.*]] = ft.load_state @h "col_var" by columns {{.*}} : tensor<18xf32>
// UPDATES-DAG: %[[V:.*]] = ft.load_state @h "variance" by vectors {{.*}} : tensor<6xf32>
// UPDATES: %[[X:.*]] = ft.view %[[D]][@up]
// UPDATES: %[[UP:.*]] = ft.get @up
// UPDATES: %[[DU:.*]]:3 = ft.call @adafactor.4x6(%[[X]], %[[UP]], %[[R]], %[[C]], %[[N]])
// UPDATES: %[[DB:.*]]:2 = ft.call @adafactor.6(
// UPDATES: %[[DD:.*]]:3 = ft.call @adafactor.3x6x4(
// UPDATES: %[[NEW:.*]] = ft.call @adafactor.join(%[[DU]]#1, %[[DD]]#1)
// UPDATES: ft.store_state %[[NEW]] into @h "row_var" by rows
// UPDATES: ft.store_state %[[DB]]#1 into @h "variance" by vectors
// UPDATES: %[[P:.*]] = ft.pack %[[DU]]#0, %[[DB]]#0, %[[DD]]#0 at [@up, @bias, @down] {phase = "optimizer"}
// UPDATES: ft.update @h by @adafactor(%[[P]], {{.*}}) states []

// A composite for each shape and place; the states of a unit are read and written as one.
// UPDATES: func.func private @adafactor.4x6({{.*}}: tensor<4x6xf32>, {{.*}}: tensor<4x6xf32>, {{.*}}: tensor<22xf32>, {{.*}}: tensor<18xf32>, {{.*}}: tensor<2x2xf32>) -> (tensor<4x6xf32>, tensor<4xf32> {ft.statistic}, tensor<6xf32> {ft.statistic}) attributes {ft.composite}
// UPDATES: func.func private @adafactor.6({{.*}}: tensor<6xf32>, {{.*}}: tensor<6xf32>, {{.*}}: tensor<6xf32>, {{.*}}: tensor<2x2xf32>) -> (tensor<6xf32>, tensor<6xf32> {ft.statistic})
// UPDATES: func.func private @adafactor.3x6x4({{.*}}) -> (tensor<3x6x4xf32>, tensor<18xf32> {ft.statistic}, tensor<12xf32> {ft.statistic})
// UPDATES: ft.slice %{{.*}} at [4] : tensor<22xf32> -> tensor<18xf32>

// UNSCALED-LABEL: func.func @train_step
// UNSCALED-NOT: ft.get @up {{.*}}optimizer
// UNSCALED: ft.call @adafactor.4x6(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {phase

// Directions are gathered in bf16, weights as they are computed with, and states stay f32.
// SHARDED-LABEL: func.func @train_step
// SHARDED: %[[D:.*]] = ft.update @h by @adafactor.direction({{.*}}) {{.*}} -> !ft.slice<@h, bf16>
// SHARDED-NEXT: %[[G:.*]] = ft.gather %[[D]] {phase = "optimizer"} {{.*}} -> !ft.flat<@h, bf16>
// SHARDED: %[[W:.*]] = ft.gather {{.*}}phase = "optimizer"{{.*}} -> !ft.flat<@h, f16>
// SHARDED: ft.call @adafactor.4x6({{.*}}) {{.*}} : (tensor<4x6xbf16>, tensor<4x6xf16>, tensor<22xf32>, tensor<18xf32>, tensor<2x2xf32>) -> (tensor<4x6xbf16>, tensor<4xf32>, tensor<6xf32>)
// SHARDED: ft.release %[[G]]
// SHARDED: ft.pack {{.*}} -> !ft.flat<@h, bf16>

// States are copied before they are changed.
// LOWERED: %[[B:.*]] = ftx.buffer "h.row_var" {{.*}}optimizer_state
// LOWERED: ftx.state @h "row_var" %[[B]] by rows
// LOWERED: ftx.kernel "copy" on compute ins(%[[B]] : tensor<22xf32>) outs(%[[OLD:.*]] : tensor<22xf32>)
// LOWERED: ftx.kernel "cluster" on compute ins(%[[OLD]]
// LOWERED: ftx.kernel "copy" on compute {{.*}} outs(%[[B]] : tensor<22xf32>)
func.func @train_step(%tokens: tensor<3xi32>, %targets: tensor<3xi32>) -> tensor<f32> {
  %loss = ft.fill 1.0 {phase = "forward"} : tensor<f32>
  %g.up = ft.fill 1.0 {phase = "backward"} : tensor<4x6xf32>
  ft.gradient @up, %g.up {phase = "backward"} : tensor<4x6xf32>
  %g.bias = ft.fill 1.0 {phase = "backward"} : tensor<6xf32>
  ft.gradient @bias, %g.bias {phase = "backward"} : tensor<6xf32>
  %g.down = ft.fill 1.0 {phase = "backward"} : tensor<3x6x4xf32>
  ft.gradient @down, %g.down {phase = "backward"} : tensor<3x6x4xf32>
  return %loss : tensor<f32>
}
