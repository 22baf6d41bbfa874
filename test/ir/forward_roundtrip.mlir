// RUN: ft-opt %s | ft-opt | FileCheck %s
// RUN: ft-opt %s --mlir-print-op-generic | ft-opt | FileCheck %s

// Ops of forward graphs, printed and parsed again, in the custom and in the generic form.

// CHECK: ft.parameter @model.embed.weight : tensor<8x4xf32> = #ft.init<normal, 0.02> {aliases = ["head.weight"], layer = "h.0"}
ft.parameter @model.embed.weight : tensor<8x4xf32> = #ft.init<normal, 0.02> {aliases = ["head.weight"], layer = "h.0"}
// CHECK: ft.parameter @b : tensor<4xf32> = #ft.init<constant, 1.0> {frozen, no_decay}
ft.parameter @b : tensor<4xf32> = #ft.init<constant, 1.0> {frozen, no_decay}
// Reals are printed with the digits that they need, no more.
// CHECK: ft.parameter @small : tensor<4xbf16> = #ft.init<normal, 0.00408248290463863>
ft.parameter @small : tensor<4xbf16> = #ft.init<normal, 0.004082482904638630>
// CHECK: ft.parameter @even : tensor<4xf32> = #ft.init<uniform, 0.125>
ft.parameter @even : tensor<4xf32> = #ft.init<uniform, 0.125>
// CHECK: ft.parameter @placed : tensor<4xf32> = #ft.init<constant, -1.0e-30> {offset = 2048 : i64, unit = @u}
ft.parameter @placed : tensor<4xf32> = #ft.init<constant, -1.0e-30> {offset = 2048 : i64, unit = @u}

// CHECK-LABEL: func.func @lookups
func.func @lookups(%ids: tensor<2x3xi32>) -> tensor<2x3x4xf32> {
  // CHECK: %embed.weight = ft.get @model.embed.weight {layer = "h.0"} : tensor<8x4xf32>
  %table = ft.get @model.embed.weight {layer = "h.0"} : tensor<8x4xf32>
  // CHECK: %b = ft.get @b : tensor<4xf32>
  %b = ft.get @b : tensor<4xf32>
  // CHECK: %rng = ft.input "rng" : tensor<3xi64>
  %rng = ft.input "rng" : tensor<3xi64>
  // CHECK: %lr = ft.input "lr" : tensor<f32>
  %lr = ft.input "lr" : tensor<f32>
  // CHECK: %step = ft.input "step" : tensor<i64>
  %step = ft.input "step" : tensor<i64>
  // CHECK: ft.embedding %{{.*}}, %embed.weight : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
  %x = ft.embedding %ids, %table : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ft.iota : tensor<3xi32>
  %positions = ft.iota : tensor<3xi32>
  // CHECK: ft.fill 0.5 : tensor<3x4xf32>
  %half = ft.fill 0.5 : tensor<3x4xf32>
  // CHECK: ft.add %{{.*}}, %{{.*}} : tensor<2x3x4xf32>, tensor<3x4xf32>
  %y = ft.add %x, %half : tensor<2x3x4xf32>, tensor<3x4xf32>
  // CHECK: ft.copy %{{.*}} : tensor<2x3x4xf32>
  %z = ft.copy %y : tensor<2x3x4xf32>
  return %z : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @norms_and_products
func.func @norms_and_products(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>, %m: tensor<4x6xf32>, %t: tensor<6x4xf32>,
                              %bias: tensor<6xf32>, %acc: tensor<4x6xf32>) {
  // CHECK: ft.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps 1.0e-05 : tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>
  %0 = ft.layer_norm %x, %w, %w eps 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: ft.rms_norm %{{.*}}, %{{.*}} eps 1.0e-06 {layer = "a"} : tensor<2x3x4xf32>, tensor<4xf32>
  %1 = ft.rms_norm %x, %w eps 1.0e-6 {layer = "a"} : tensor<2x3x4xf32>, tensor<4xf32>
  // CHECK: ft.matmul %{{.*}}, %{{.*}} bias %{{.*}} : (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<2x3x6xf32>
  %2 = ft.matmul %x, %m bias %bias : (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<2x3x6xf32>
  // CHECK: ft.matmul %{{.*}}, %{{.*}} transpose_b {layer = "a"} : (tensor<2x3x4xf32>, tensor<6x4xf32>) -> tensor<2x3x6xf32>
  %3 = ft.matmul %x, %t transpose_b {layer = "a"} : (tensor<2x3x4xf32>, tensor<6x4xf32>) -> tensor<2x3x6xf32>
  // CHECK: ft.matmul %{{.*}}, %{{.*}} into %{{.*}} transpose_a : (tensor<2x3x4xf32>, tensor<2x3x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = ft.matmul %x, %3 into %acc transpose_a : (tensor<2x3x4xf32>, tensor<2x3x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// CHECK-LABEL: func.func @products_with_gelu
func.func @products_with_gelu(%a: tensor<2x3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %x: tensor<2x3x8xf32>, %t: tensor<8x4xf32>) {
  // CHECK: %{{.*}}, %{{.*}} = ft.matmul_gelu %{{.*}}, %{{.*}} bias %{{.*}} then @gelu {layer = "a"} : (tensor<2x3x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>)
  %0:2 = ft.matmul_gelu %a, %w bias %b then @gelu {layer = "a"} : (tensor<2x3x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>)
  // CHECK: %{{.*}} = ft.matmul_gelu %{{.*}}, %{{.*}} transpose_b then @gelu : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  %1 = ft.matmul_gelu %a, %t transpose_b then @gelu : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  // CHECK: %{{.*}} = ft.matmul_gelu_grad %{{.*}}, %{{.*}} at %{{.*}} transpose_b then @gelu.grad : tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3x8xf32>
  %2 = ft.matmul_gelu_grad %a, %t at %x transpose_b then @gelu.grad : tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3x8xf32>
  return
}

// CHECK: func.func private @gelu({{.*}} attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "tanh"}>}
func.func private @gelu(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "tanh"}>} {
  %y = ft.silu %x : tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}
func.func private @gelu.grad(%x: tensor<2x3x8xf32>, %dy: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> attributes {ft.composite} {
  %dx = ft.mul %x, %dy : tensor<2x3x8xf32>
  return %dx : tensor<2x3x8xf32>
}

// CHECK-LABEL: func.func @gradients_of_weight_and_bias
func.func @gradients_of_weight_and_bias(%x: tensor<2x3x4xbf16>, %dy: tensor<2x3x8xbf16>) {
  // CHECK: %{{.*}}, %{{.*}} = ft.matmul_bias_grad %{{.*}}, %{{.*}} transpose_a beside @sum_rows partial_bytes [0, 64] {layer = "a"} : (tensor<2x3x4xbf16>, tensor<2x3x8xbf16>) -> (tensor<4x8xf32>, tensor<8xf32>)
  %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum_rows partial_bytes [0, 64] {layer = "a"} : (tensor<2x3x4xbf16>, tensor<2x3x8xbf16>) -> (tensor<4x8xf32>, tensor<8xf32>)
  // CHECK: %{{.*}}, %{{.*}} = ft.matmul_bias_grad %{{.*}}, %{{.*}} transpose_a beside @sum_rows of_a partial_bytes [0, 64] : (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %1:2 = ft.matmul_bias_grad %dy, %x transpose_a beside @sum_rows of_a partial_bytes [0, 64] : (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>) -> (tensor<8x4xf32>, tensor<8xf32>)
  return
}
func.func private @sum_rows(%x: tensor<2x3x8xbf16>) -> tensor<8xf32> attributes {ft.cluster} {
  %sum = ft.reduce "sum" %x over [0, 1] : tensor<2x3x8xbf16> -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<2x3x8xf32>, %v: tensor<8xf32>) {
  // CHECK: ft.mul %{{.*}}, %{{.*}} : tensor<2x3x8xf32>, tensor<8xf32>
  %0 = ft.mul %x, %v : tensor<2x3x8xf32>, tensor<8xf32>
  // CHECK: ft.scale %{{.*}}, 0.25 : tensor<2x3x8xf32>
  %1 = ft.scale %x, 0.25 : tensor<2x3x8xf32>
  // CHECK: ft.gelu %{{.*}} approximate "tanh" : tensor<2x3x8xf32>
  %2 = ft.gelu %x approximate "tanh" : tensor<2x3x8xf32>
  // CHECK: ft.gelu %{{.*}} approximate "none" : tensor<2x3x8xf32>
  %3 = ft.gelu %x approximate "none" : tensor<2x3x8xf32>
  // CHECK: ft.swiglu %{{.*}}, %{{.*}} : tensor<2x3x8xf32>
  %4 = ft.swiglu %x, %0 : tensor<2x3x8xf32>
  // CHECK: ft.reduce "sum" %{{.*}} over [0] : tensor<2x3x8xf32> -> tensor<3x8xf32>
  %5 = ft.reduce "sum" %x over [0] : tensor<2x3x8xf32> -> tensor<3x8xf32>
  // CHECK: ft.broadcast %{{.*}} : tensor<8xf32> -> tensor<2x3x8xf32>
  %6 = ft.broadcast %v : tensor<8xf32> -> tensor<2x3x8xf32>
  // CHECK: %{{.*}}:2 = ft.split %{{.*}} : tensor<2x3x8xf32> -> tensor<2x3x2xf32>, tensor<2x3x6xf32>
  %7:2 = ft.split %x : tensor<2x3x8xf32> -> tensor<2x3x2xf32>, tensor<2x3x6xf32>
  // CHECK: ft.concat %{{.*}}, %{{.*}} : tensor<2x3x2xf32>, tensor<2x3x6xf32> -> tensor<2x3x8xf32>
  %8 = ft.concat %7#0, %7#1 : tensor<2x3x2xf32>, tensor<2x3x6xf32> -> tensor<2x3x8xf32>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x3x8xf32>, %k: tensor<2x3x4xf32>) {
  // CHECK: ft.rope %{{.*}} heads 4 base 10000.0 : tensor<2x3x8xf32>
  %0 = ft.rope %q heads 4 base 1.0e4 : tensor<2x3x8xf32>
  // CHECK: ft.rope %{{.*}} heads 2 base 500000.0 inverse : tensor<2x3x4xf32>
  %1 = ft.rope %k heads 2 base 500000.0 inverse : tensor<2x3x4xf32>
  // CHECK: %[[COS:.*]], %[[SIN:.*]] = ft.rotary_table base 10000.0 : tensor<3x1xf32>
  %cos, %sin = ft.rotary_table base 1.0e4 : tensor<3x1xf32>
  // CHECK: ft.rotate %{{.*}} by %[[COS]], %[[SIN]] heads 4 inverse : tensor<2x3x8xf32>, tensor<3x1xf32>
  %r = ft.rotate %q by %cos, %sin heads 4 inverse : tensor<2x3x8xf32>, tensor<3x1xf32>
  // CHECK: ft.attention %{{.*}}, %{{.*}}, %{{.*}} heads 4 kv_heads 2 causal : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  %2, %3 = ft.attention %0, %1, %k heads 4 kv_heads 2 causal : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  // CHECK: ft.attention %{{.*}}, %{{.*}}, %{{.*}} heads 4 kv_heads 4 :
  %4, %5 = ft.attention %q, %q, %q heads 4 kv_heads 4 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  // CHECK: ft.qkv_attention %{{.*}} heads 2 kv_heads 1 causal : (tensor<2x3x8xf32>) -> (tensor<2x3x4xf32>, tensor<2x2x3xf32>)
  %6, %7 = ft.qkv_attention %q heads 2 kv_heads 1 causal : (tensor<2x3x8xf32>) -> (tensor<2x3x4xf32>, tensor<2x2x3xf32>)
  // CHECK: ft.attention %{{.*}} heads 4 kv_heads 2 causal window 2 scale 1.250000e-01 softcap 5.000000e+01 alibi :
  %8, %9 = ft.attention %q, %k, %k heads 4 kv_heads 2 causal window 2 scale 0.125 softcap 50.0 alibi : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  // CHECK: ft.qkv_attention %{{.*}} heads 2 kv_heads 1 window 4096 softcap 3.000000e+01 : (tensor<2x3x8xf32>)
  %10, %11 = ft.qkv_attention %q heads 2 kv_heads 1 window 4096 softcap 30.0 : (tensor<2x3x8xf32>) -> (tensor<2x3x4xf32>, tensor<2x2x3xf32>)
  return
}

// CHECK-LABEL: func.func @losses
func.func @losses(%x: tensor<2x3x4xf32>, %w: tensor<8x4xf32>, %logits: tensor<2x3x8xf32>, %targets: tensor<2x3xi32>) {
  // CHECK: ft.cross_entropy %{{.*}}, %{{.*}} : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> tensor<f32>
  %0 = ft.cross_entropy %logits, %targets : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> tensor<f32>
  // CHECK: ft.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3xi32>) -> tensor<f32>
  %1 = ft.linear_cross_entropy %x, %w, %targets : (tensor<2x3x4xf32>, tensor<8x4xf32>, tensor<2x3xi32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @latent
func.func @latent(%logits: tensor<2x3x2xf32>, %table: tensor<4x8xf32>) {
  %rng = ft.input "rng" : tensor<3xi64>
  // CHECK: ft.sample_bits %{{.*}}, %rng stream 1 : (tensor<2x3x2xf32>, tensor<3xi64>) -> tensor<2x3xi32>
  %0 = ft.sample_bits %logits, %rng stream 1 : (tensor<2x3x2xf32>, tensor<3xi64>) -> tensor<2x3xi32>
  // CHECK: ft.binary_mapper %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x2xf32>, tensor<2x3xi32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  %1 = ft.binary_mapper %logits, %0, %table : (tensor<2x3x2xf32>, tensor<2x3xi32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  // CHECK: ft.bits_kl %{{.*}} kappa 0.34657359027997264 : (tensor<2x3x2xf32>) -> tensor<f32>
  %2 = ft.bits_kl %logits kappa 0.34657359027997264 : (tensor<2x3x2xf32>) -> tensor<f32>
  return
}
