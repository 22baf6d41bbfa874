// RUN: ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=muon" | FileCheck %s --check-prefix=RULES
// RUN: ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=muon adamw-params=dow?" | FileCheck %s --check-prefix=EXCEPT
// RUN: ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=lion" | FileCheck %s --check-prefix=NONE
// RUN: not ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=muon adamw-params=dwon" 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=muon adamw-params=*" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=tiger" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=muon" --ft-form-units "--ft-insert-optimizer=optimizer=muon momentum=0.95" --ft-verify-optimizer | FileCheck %s --check-prefix=UPDATES
// RUN: ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=muon" --ft-form-units "--ft-insert-optimizer=optimizer=muon momentum=0.95" "--ft-insert-collectives=strategy=zero2" --ft-verify-collectives | FileCheck %s --check-prefix=SHARDED
// RUN: ft-opt %s --ft-outline-composites "--ft-assign-rules=optimizer=muon" --ft-form-units "--ft-insert-optimizer=optimizer=muon momentum=0.95" "--ft-insert-collectives=strategy=ddp" --ft-expand-orthogonalize "--ft-apply-precision=param-dtype=fp16" --ft-verify-precision | FileCheck %s --check-prefix=EXPANDED

// Muon updates the hidden matrices: those that products alone read, none of which makes logits.

// UNUSED: error: no parameter matches 'dwon', which adamw-params names
// NOTHING: error: optimizer muon is for the matrices of hidden layers, and the model trains none; take adamw
// UNKNOWN: error: unknown optimizer 'tiger'; one of adamw, adam, sgd, lion, muon, adafactor
// NONE-NOT: rule =

// RULES: ft.parameter @embed {{.*}}{layer = "h"}
// RULES: ft.parameter @up {{.*}}{layer = "h", rule = "muon"}
// RULES: ft.parameter @bias {{.*}}{layer = "h", no_decay}
// RULES: ft.parameter @down {{.*}}{layer = "h", rule = "muon"}
// RULES: ft.parameter @frozen {{.*}}{frozen, layer = "h"}
// RULES: ft.parameter @head {{.*}}{layer = "h"}
// EXCEPT: ft.parameter @up {{.*}}{layer = "h", rule = "muon"}
// EXCEPT: ft.parameter @down {{.*}}{layer = "h"}
ft.parameter @embed : tensor<8x4xf32> = #ft.init<normal, 1.0> {layer = "h"}
ft.parameter @up : tensor<4x6xf32> = #ft.init<normal, 1.0> {layer = "h"}
ft.parameter @bias : tensor<6xf32> = #ft.init<normal, 1.0> {layer = "h", no_decay}
ft.parameter @down : tensor<6x4xf32> = #ft.init<normal, 1.0> {layer = "h"}
ft.parameter @frozen : tensor<4x4xf32> = #ft.init<normal, 1.0> {frozen, layer = "h"}
ft.parameter @head : tensor<8x4xf32> = #ft.init<normal, 1.0> {layer = "h"}

// UPDATES: ft.unit @small {elements = 3072 : i64, small}
// UPDATES: ft.unit @h.muon {elements = 2048 : i64, rule = "muon"}
// UPDATES: func.func private @muon.direction(
// UPDATES-LABEL: func.func @train_step
// UPDATES: %[[G:.*]] = ft.pack {{.*}} at [@up, @down]
// UPDATES-DAG: %[[S0:.*]] = ft.update_scalars {{.*}}formulas = "clip; inverse_ranks"{{.*}} -> tensor<2x2xf32>
// UPDATES-DAG: %[[S1:.*]] = ft.update_scalars {{.*}}formulas = "clip; 1 - lr * weight_decay; lr"
// UPDATES: %[[D:.*]] = ft.update @h.muon by @muon.direction(%[[G]], %[[S0]]) states ["momentum_buffer"] {{.*}} -> !ft.flat<@h.muon, f32>
// UPDATES: %[[UP:.*]] = ft.view %[[D]][@up] {phase = "optimizer"}
// UPDATES-NEXT: %[[UO:.*]] = ft.orthogonalize %[[UP]] {phase = "optimizer"} : tensor<4x6xf32>
// UPDATES-NEXT: %[[DOWN:.*]] = ft.view %[[D]][@down] {phase = "optimizer"}
// UPDATES-NEXT: %[[DO:.*]] = ft.orthogonalize %[[DOWN]]
// UPDATES-NEXT: %[[P:.*]] = ft.pack %[[UO]], %[[DO]] at [@up, @down] {phase = "optimizer"}
// UPDATES-NEXT: ft.update @h.muon by @muon(%[[P]], %[[S1]]) states []
// UPDATES: ft.update @small by @adamw(

// Of slices: each matrix goes to one rank, and comes back.
// SHARDED: %[[D:.*]] = ft.update @h.muon by @muon.direction({{.*}}) {{.*}} -> !ft.slice<@h.muon, f32>
// SHARDED-NEXT: %[[W:.*]]:2 = ft.distribute %[[D]] of [@up, @down] groups [1, 1] {phase = "optimizer"} : (!ft.slice<@h.muon, f32>) -> (tensor<4x6xf32>, tensor<6x4xf32>)
// SHARDED-NEXT: %[[UO:.*]] = ft.orthogonalize %[[W]]#0 {phase = "optimizer"}
// SHARDED-NEXT: %[[DO:.*]] = ft.orthogonalize %[[W]]#1 {phase = "optimizer"}
// SHARDED-NEXT: %[[C:.*]] = ft.collect %[[UO]], %[[DO]] of [@up, @down] groups [1, 1] {phase = "optimizer"} : (tensor<4x6xf32>, tensor<6x4xf32>) -> !ft.slice<@h.muon, f32>
// SHARDED-NEXT: ft.update @h.muon by @muon(%[[C]],

// What is too small for f16 is in bf16; the smaller side is multiplied with itself.
// EXPANDED: %[[D:.*]] = ft.update @h.muon {{.*}} -> !ft.flat<@h.muon, bf16>
// EXPANDED: %[[UP:.*]] = ft.view %[[D]][@up] {{.*}} -> tensor<4x6xbf16>
// EXPANDED: ft.matmul {{.*}} transpose_b {{.*}} -> tensor<4x4xbf16>
// EXPANDED: %[[DOWN:.*]] = ft.view %[[D]][@down] {{.*}} -> tensor<6x4xbf16>
// EXPANDED: ft.matmul {{.*}} transpose_a {{.*}} -> tensor<4x4xbf16>
// EXPANDED: %[[P:.*]] = ft.pack {{.*}} at [@up, @down] {phase = "optimizer"}
// EXPANDED-NEXT: ft.update @h.muon by @muon(%[[P]],
func.func @train_step(%tokens: tensor<3xi32>, %targets: tensor<3xi32>) -> tensor<f32> {
  %embed = ft.get @embed : tensor<8x4xf32>
  %x = ft.embedding %tokens, %embed : (tensor<3xi32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  %up = ft.get @up : tensor<4x6xf32>
  %bias = ft.get @bias : tensor<6xf32>
  %h = ft.matmul %x, %up bias %bias : (tensor<3x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<3x6xf32>
  %down = ft.get @down : tensor<6x4xf32>
  %turned = ft.transpose %down [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  %y = ft.matmul %h, %turned transpose_b : (tensor<3x6xf32>, tensor<4x6xf32>) -> tensor<3x4xf32>
  %frozen = ft.get @frozen : tensor<4x4xf32>
  %z = ft.matmul %y, %frozen : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %head = ft.get @head : tensor<8x4xf32>
  %logits = ft.matmul %z, %head transpose_b : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  %loss = ft.cross_entropy %logits, %targets : (tensor<3x8xf32>, tensor<3xi32>) -> tensor<f32>
  %g.embed = ft.fill 1.0 {phase = "backward"} : tensor<8x4xf32>
  ft.gradient @embed, %g.embed {phase = "backward"} : tensor<8x4xf32>
  %g.up = ft.fill 1.0 {phase = "backward"} : tensor<4x6xf32>
  ft.gradient @up, %g.up {phase = "backward"} : tensor<4x6xf32>
  %g.bias = ft.fill 1.0 {phase = "backward"} : tensor<6xf32>
  ft.gradient @bias, %g.bias {phase = "backward"} : tensor<6xf32>
  %g.down = ft.fill 1.0 {phase = "backward"} : tensor<6x4xf32>
  ft.gradient @down, %g.down {phase = "backward"} : tensor<6x4xf32>
  %g.head = ft.fill 1.0 {phase = "backward"} : tensor<8x4xf32>
  ft.gradient @head, %g.head {phase = "backward"} : tensor<8x4xf32>
  return %loss : tensor<f32>
}
