// RUN: ftc model gpt2 --layers=1 | FileCheck %s
// RUN: ftc model gpt2 | ft-opt -o /dev/null

// A model as a reader sees it: values and parameters under their names, one op a line.

// CHECK: module attributes {ft.base_prefix = "transformer.", ft.batch = 4 : i64, ft.facts = {{.*}}, ft.model = "gpt2", ft.preset = "debug", ft.seq_len = 64 : i64, ft.vocab_size = 256 : i64}
// CHECK: ft.parameter @transformer.wte.weight : tensor<256x64xf32> = #ft.init<normal, 0.02> {aliases = ["lm_head.weight"], layer = "transformer.embed"}
// CHECK: ft.parameter @transformer.h.0.ln_1.weight : tensor<64xf32> = #ft.init<constant, 1.0> {layer = "transformer.h.0", no_decay}
// CHECK: func.func @forward(%tokens: tensor<4x64xi32>, %targets: tensor<4x64xi32>) -> tensor<f32>
// CHECK: ft.embedding %tokens, %wte.weight
// CHECK: %positions = ft.iota
// CHECK: ft.embedding %positions, %wpe.weight
// CHECK: %[[NORM:.*]] = ft.layer_norm %x, %ln_1.weight, %ln_1.bias eps 1.0e-05 {layer = "transformer.h.0"}
// CHECK: %[[FUSED:.*]] = ft.matmul %[[NORM]], %c_attn.weight bias %c_attn.bias
// CHECK: %qkv:3 = ft.split %[[FUSED]]
// CHECK: %out, %lse = ft.attention %qkv#0, %qkv#1, %qkv#2 heads 4 kv_heads 4 causal
// CHECK: ft.gelu %{{.*}} approximate "tanh"
// CHECK: %[[TIED:.*]] = ft.get @transformer.wte.weight {layer = "transformer.head"}
// CHECK: %logits = ft.matmul %{{.*}}, %[[TIED]] transpose_b {layer = "transformer.head"}
// CHECK: %loss = ft.cross_entropy %logits, %targets
// CHECK: return %loss : tensor<f32>
