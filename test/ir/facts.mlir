// RUN: ft-opt %s | ft-opt | FileCheck %s
// RUN: ftc model gpt2 | FileCheck %s --check-prefix=GPT2
// RUN: ftc model llama | FileCheck %s --check-prefix=LLAMA
// RUN: ftc model qwen2-0.5b --dropout=0.1 --layers=1 | FileCheck %s --check-prefix=QWEN2
// RUN: ftc model free_transformer | FileCheck %s --check-prefix=FREE
// RUN: ftc model baseline | FileCheck %s --check-prefix=BASELINE

// What a builder says of its model. What a model does not have is not said.

// GPT2: ft.facts = {activation = "gelu_tanh", attention_output_bias = true, head_size = 16 : i64, hidden_size = 64 : i64, intermediate_size = 256 : i64,
// GPT2-SAME: max_positions = 64 : i64, mlp_bias = true, model_type = "gpt2", norm = "layer_norm", norm_eps = 1.000000e-05 : f64, num_heads = 4 : i64,
// GPT2-SAME: num_kv_heads = 4 : i64, num_layers = 2 : i64, positions = "learned", qkv_bias = true, tied_head = true, vocab_size = 256 : i64}

// LLAMA: ft.facts = {activation = "silu", gated_mlp = true, head_size = 16 : i64, hidden_size = 64 : i64, intermediate_size = 176 : i64,
// LLAMA-SAME: max_positions = 64 : i64, model_type = "llama", norm_eps = 1.000000e-05 : f64, num_heads = 4 : i64, num_kv_heads = 2 : i64,
// LLAMA-SAME: num_layers = 2 : i64, rope_theta = 1.000000e+04 : f64, vocab_size = 256 : i64}

// QWEN2: ft.facts = {activation = "silu", embedding_dropout = 1.000000e-01 : f64, gated_mlp = true,
// QWEN2-SAME: model_type = "qwen2", norm_eps = {{[^ ]*}} : f64,
// QWEN2-SAME: qkv_bias = true, residual_dropout = 1.000000e-01 : f64, rope_theta = 1.000000e+06 : f64, tied_head = true

// FREE: ft.facts = {{.*}}latent_bits = 6 : i64,{{.*}}model_type = "free_transformer",
// BASELINE: ft.facts = {{.*}}model_type = "llama",{{.*}}tied_head = true

// CHECK: module attributes {ft.facts = {activation = "silu", head_size = 2 : i64, hidden_size = 4 : i64,
// CHECK-SAME: sliding_layers = array<i64: 0, 2>, sliding_window = 8 : i64
module attributes {ft.facts = {model_type = "mine", vocab_size = 8 : i64, hidden_size = 4 : i64, num_layers = 3 : i64, num_heads = 2 : i64,
                               num_kv_heads = 2 : i64, head_size = 2 : i64, intermediate_size = 8 : i64, max_positions = 16 : i64,
                               activation = "silu", sliding_window = 8 : i64, sliding_layers = array<i64: 0, 2>}} {
}
