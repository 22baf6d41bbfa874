// RUN: ft-opt %s --ft-form-units --ft-verify-units | FileCheck %s --check-prefixes=CHECK,LAYERS
// RUN: ft-opt %s --ft-form-units=wrap=none --ft-verify-units | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: ft-opt %s "--ft-form-units=wrap=size min-num-params=2000" --ft-verify-units | FileCheck %s --check-prefixes=CHECK,SIZE
// RUN: ft-opt %s "--ft-form-units=wrap=size min-num-params=1" --ft-verify-units | FileCheck %s --check-prefixes=CHECK,LAYERS
// RUN: ft-opt %s "--ft-form-units=wrap=names wrap-names=h.*" --ft-verify-units | FileCheck %s --check-prefixes=CHECK,NAMES
// RUN: ft-opt %s --ft-form-units=persistence-threshold=40 --ft-verify-units | FileCheck %s --check-prefixes=CHECK,SMALL
// RUN: not ft-opt %s --ft-form-units=wrap=layers 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ft-opt %s "--ft-form-units=wrap=names wrap-names=h.*,g.?" 2>&1 | FileCheck %s --check-prefix=UNMATCHED

// Wrap policies. In all of them frozen parameters have units of their own, without a gradient.

// UNKNOWN: error: unknown wrap policy 'layers'; one of transformer, size, names, none
// UNMATCHED: error: no layer matches 'g.?', which the wrap policy names

// LAYERS: ft.unit @embed {elements = 1024 : i64}
// LAYERS-NEXT: ft.unit @h.0 {elements = 3072 : i64}
// LAYERS-NEXT: ft.unit @h.0.frozen {elements = 1024 : i64}
// LAYERS-NEXT: ft.unit @h.1 {elements = 2048 : i64}
// LAYERS-NEXT: ft.unit @head {elements = 1024 : i64}
// LAYERS-NEXT: ft.parameter

// NONE: ft.unit @root {elements = 7168 : i64}
// NONE-NEXT: ft.unit @root.frozen {elements = 1024 : i64}
// NONE-NEXT: ft.parameter

// Layers are joined until a unit has 2000 elements or more: 32 + 1644, then 1600 more; the rest is smaller.
// SIZE: ft.unit @embed..h.1 {elements = 6144 : i64}
// SIZE-NEXT: ft.unit @embed..h.1.frozen {elements = 1024 : i64}
// SIZE-NEXT: ft.unit @head {elements = 1024 : i64}
// SIZE-NEXT: ft.parameter

// Layers that no pattern matches are one unit.
// NAMES: ft.unit @root {elements = 2048 : i64}
// NAMES-NEXT: ft.unit @h.0 {elements = 3072 : i64}
// NAMES-NEXT: ft.unit @h.0.frozen {elements = 1024 : i64}
// NAMES-NEXT: ft.unit @h.1 {elements = 2048 : i64}
// NAMES-NEXT: ft.parameter

// Fewer than 40 elements: @table and @norm, but not @b, which has 40; @still is frozen, and small too.
// SMALL: ft.unit @small {elements = 2048 : i64, small}
// SMALL-NEXT: ft.unit @h.0 {elements = 3072 : i64}
// SMALL-NEXT: ft.unit @small.frozen {elements = 1024 : i64, small}
// SMALL-NEXT: ft.unit @h.1 {elements = 2048 : i64}
// SMALL-NEXT: ft.parameter @table {{.*}}offset = 0 : i64, unit = @small}
// SMALL: ft.parameter @norm {{.*}}offset = 1024 : i64, unit = @small}
ft.parameter @table : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "embed"}
ft.parameter @w0 : tensor<40x40xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
ft.parameter @b : tensor<40xf32> = #ft.init<constant, 0.0> {layer = "h.0"}
ft.parameter @still : tensor<4xf32> = #ft.init<constant, 1.0> {frozen, layer = "h.0"}
ft.parameter @w1 : tensor<40x40xf32> = #ft.init<normal, 0.02> {layer = "h.1"}
ft.parameter @norm : tensor<4xf32> = #ft.init<constant, 1.0> {layer = "head"}

// CHECK-LABEL: func.func @train_step
func.func @train_step(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
  %loss = ft.fill 1.0 : tensor<f32>
  %small = ft.fill 1.0 {layer = "head", phase = "backward"} : tensor<4xf32>
  ft.gradient @norm, %small {layer = "head", phase = "backward"} : tensor<4xf32>
  %square = ft.fill 2.0 {layer = "h.1", phase = "backward"} : tensor<40x40xf32>
  ft.gradient @w1, %square {layer = "h.1", phase = "backward"} : tensor<40x40xf32>
  ft.gradient @w0, %square {layer = "h.0", phase = "backward"} : tensor<40x40xf32>
  %row = ft.fill 3.0 {layer = "h.0", phase = "backward"} : tensor<40xf32>
  // LAYERS: ft.pack %{{.*}}, %{{.*}} at [@w0, @b] {layer = "h.0", phase = "backward"}
  ft.gradient @b, %row {layer = "h.0", phase = "backward"} : tensor<40xf32>
  %table = ft.fill 4.0 {layer = "embed", phase = "backward"} : tensor<8x4xf32>
  // NONE: ft.pack %{{.*}} at [@table, @w0, @b, @w1, @norm] {layer = "embed", phase = "backward"} : {{.*}} -> !ft.flat<@root, f32>
  // SIZE: ft.pack %{{.*}} at [@table, @w0, @b, @w1] {layer = "embed", phase = "backward"} : {{.*}} -> !ft.flat<@embed..h.1, f32>
  // NAMES: ft.pack %{{.*}} at [@table, @norm] {layer = "embed", phase = "backward"} : {{.*}} -> !ft.flat<@root, f32>
  // SMALL: ft.pack %{{.*}} at [@table, @norm] {layer = "embed", phase = "backward"} : {{.*}} -> !ft.flat<@small, f32>
  ft.gradient @table, %table {layer = "embed", phase = "backward"} : tensor<8x4xf32>
  // CHECK: return
  return %loss : tensor<f32>
}
