// RUN: ftc compile %s --strategy=full_shard --lora=r:2,alpha:6,targets:up,proj,dropout:0.25 --dump=parse | FileCheck %s
// RUN: ftc compile %s --strategy=full_shard --lora=r:4,alpha:6,targets:proj,rslora:on,modules_to_save:h.0.up --dump=parse | FileCheck %s --check-prefix=WHOLE
// RUN: ftc compile %s --strategy=full_shard --lora=r:2,alpha:2,targets:all-linear --dump=parse | FileCheck %s --check-prefix=ALL
// RUN: ftc compile %s --strategy=full_shard --lora=r:2,alpha:6,targets:up,proj --param-dtype=bf16 --dump=precision | FileCheck %s --check-prefix=TYPES
// RUN: ftc compile %s --strategy=full_shard --frozen=h.0.up.* --param-dtype=bf16 --dump=precision | FileCheck %s --check-prefix=FROZEN
// RUN: not ftc compile %s --strategy=full_shard --lora=r:2,alpha:6,targets:wte --dump=parse 2>&1 | FileCheck %s --check-prefix=TIED
// RUN: not ftc compile %s --strategy=full_shard --lora=r:2,alpha:6,targets:twice --dump=parse 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ftc compile %s --strategy=full_shard --lora=r:2,alpha:6,targets:ups --dump=parse 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ftc compile %s --strategy=full_shard --lora=r:2,alpha:6,targets:up,modules_to_save:wte --dump=parse 2>&1 | FileCheck %s --check-prefix=TIED-WHOLE
// RUN: not ftc compile %s --strategy=full_shard --lora=r:2,alpha:6,targets:up,modules_to_save:up --dump=parse 2>&1 | FileCheck %s --check-prefix=BOTH

// Adapters come last, so that what others draw stays; everything else is frozen. `up` is [in, out], `proj` [out, in]; both are read as they are.

// CHECK: ft.lora = {alpha = 6.000000e+00 : f64, dropout = 2.500000e-01 : f64, input_first = false, modules = ["h.0.up", "h.0.proj"], r = 2 : i64, rslora = false, saved = []}
// CHECK: ft.parameter @wte.weight {{.*}}frozen
// CHECK: ft.parameter @h.0.up.weight {{.*}}frozen
// CHECK: ft.parameter @h.0.up.bias {{.*}}frozen
// CHECK: ft.parameter @h.0.up.lora_A.weight : tensor<2x4xf32> = #ft.init<uniform, 0.5> {layer = "h.0"}
// CHECK-NEXT: ft.parameter @h.0.up.lora_B.weight : tensor<6x2xf32> = #ft.init<constant, 0.0> {layer = "h.0"}
// CHECK-NEXT: ft.parameter @h.0.proj.lora_A.weight : tensor<2x6xf32> = #ft.init<uniform, 0.4082482904638631> {layer = "h.0"}
// CHECK-NEXT: ft.parameter @h.0.proj.lora_B.weight : tensor<4x2xf32>
// CHECK: %[[RNG:.*]] = ft.input "rng"
// CHECK-NOT: ft.input "rng"
// CHECK: %[[X:.*]] = ft.dropout %{{.*}}, %[[RNG]] rate 0.1 stream 7
// CHECK: %[[UP:.*]] = ft.matmul %[[X]], %{{.*}} bias
// CHECK-NEXT: %[[DROPPED:.*]] = ft.dropout %[[X]], %[[RNG]] rate 0.25 stream 8 {layer = "h.0"}
// CHECK-NEXT: %[[A:.*]] = ft.get @h.0.up.lora_A.weight
// CHECK-NEXT: %[[LOW:.*]] = ft.matmul %[[DROPPED]], %[[A]] transpose_b {layer = "h.0"} : (tensor<2x3x4xf32>, tensor<2x4xf32>) -> tensor<2x3x2xf32>
// CHECK-NEXT: %[[SCALED:.*]] = ft.scale %[[LOW]], 3.0
// CHECK-NEXT: %[[B:.*]] = ft.get @h.0.up.lora_B.weight
// CHECK-NEXT: %[[MORE:.*]] = ft.matmul %[[SCALED]], %[[B]] transpose_b
// CHECK-NEXT: %[[SUM:.*]] = ft.add %[[UP]], %[[MORE]]
// CHECK: ft.matmul %[[SUM]], %{{.*}} transpose_b
// CHECK: stream 9
// CHECK: ft.get @h.0.proj.lora_B.weight

// alpha over the root of the rank; a module that is trained whole, with its bias.
// WHOLE: ft.lora = {{.*}}input_first = false, modules = ["h.0.proj"], r = 4 : i64, rslora = true, saved = ["h.0.up"]
// WHOLE: ft.parameter @wte.weight {{.*}}frozen
// WHOLE-NEXT: ft.parameter @h.0.up.weight : tensor<4x6xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
// WHOLE-NEXT: ft.parameter @h.0.up.bias : tensor<6xf32> = #ft.init<constant, 0.0> {layer = "h.0", no_decay}
// WHOLE-NEXT: ft.parameter @h.0.proj.weight {{.*}}frozen
// WHOLE: ft.scale %{{.*}}, 3.0

// All but the tied head, and what is read twice in different ways; of a factor of 1 nothing is left.
// ALL: modules = ["h.0.up", "h.0.proj"]
// ALL-NOT: ft.scale

// What is frozen has no master; without adapters it has.
// TYPES-DAG: ft.unit @h.0.frozen {{.*}}compute = bf16, elements = {{[0-9]+}} : i64, master = bf16
// TYPES-DAG: ft.unit @h.0 {{.*}}compute = bf16{{.*}}working_copy
// FROZEN: ft.unit @h.0.frozen {{.*}}working_copy
// FROZEN-NOT: master = bf16

// TIED: insert_lora.mlir:{{[0-9:]+}}: error: lora: wte.weight, which 'wte' means, cannot have adapters: it is tied to head.weight; weights that can have adapters: up, proj
// TWICE: error: lora: twice.weight, which 'twice' means, cannot have adapters: it is multiplied with both ways round
// NONE: error: lora: no module matches 'ups'; weights that can have adapters: up, proj
// TIED-WHOLE: error: lora: wte.weight cannot be trained whole: it is tied
// BOTH: error: lora: h.0.up has adapters and is trained whole; choose one
module {
  ft.parameter @wte.weight : tensor<8x4xf32> = #ft.init<normal, 0.02> {layer = "embed", aliases = ["head.weight"]}
  ft.parameter @h.0.up.weight : tensor<4x6xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  ft.parameter @h.0.up.bias : tensor<6xf32> = #ft.init<constant, 0.0> {layer = "h.0", no_decay}
  ft.parameter @h.0.proj.weight : tensor<4x6xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  ft.parameter @twice.weight : tensor<4x4xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  func.func @forward(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
    %e = ft.get @wte.weight : tensor<8x4xf32>
    %x = ft.embedding %tokens, %e {layer = "embed"} : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
    %rng = ft.input "rng" : tensor<3xi64>
    %d = ft.dropout %x, %rng rate 0.1 stream 7 {layer = "embed"} : tensor<2x3x4xf32>, tensor<3xi64>
    %u = ft.get @h.0.up.weight : tensor<4x6xf32>
    %b = ft.get @h.0.up.bias : tensor<6xf32>
    %y = ft.matmul %d, %u bias %b {layer = "h.0"} : (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<2x3x6xf32>
    %p = ft.get @h.0.proj.weight : tensor<4x6xf32>
    %z = ft.matmul %y, %p transpose_b {layer = "h.0"} : (tensor<2x3x6xf32>, tensor<4x6xf32>) -> tensor<2x3x4xf32>
    %t = ft.get @twice.weight : tensor<4x4xf32>
    %s = ft.matmul %z, %t {layer = "h.0"} : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %r = ft.matmul %s, %t transpose_b {layer = "h.0"} : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %l = ft.matmul %r, %e transpose_b {layer = "embed"} : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
    %loss = ft.cross_entropy %l, %targets {layer = "embed"} : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
