// RUN: ftc model llama --layers=1 | FileCheck %s
// RUN: ftc model llama | ft-opt -o /dev/null
// RUN: ftc model qwen2-0.5b --layers=1 --batch=1 --seq=8 | FileCheck %s --check-prefix=QWEN

// CHECK: ft.parameter @model.layers.0.self_attn.k_proj.weight : tensor<32x64xf32> = #ft.init<normal, 0.02> {layer = "model.layers.0"}
// CHECK: ft.parameter @lm_head.weight : tensor<256x64xf32>
// CHECK: %q = ft.matmul %[[NORM:.*]], %q_proj.weight transpose_b
// CHECK: %k = ft.matmul %[[NORM]], %k_proj.weight transpose_b
// CHECK: %v = ft.matmul %[[NORM]], %v_proj.weight transpose_b
// CHECK: %[[Q:.*]] = ft.rope %q heads 4 base 10000.0
// CHECK: %[[K:.*]] = ft.rope %k heads 2 base 10000.0
// CHECK: ft.attention %[[Q]], %[[K]], %v heads 4 kv_heads 2 causal
// CHECK: %[[SWIGLU:.*]] = ft.swiglu %gate, %up
// CHECK: ft.matmul %[[SWIGLU]], %down_proj.weight transpose_b
// CHECK: ft.matmul %{{.*}}, %lm_head.weight transpose_b {layer = "model.head"}

// QWEN: ft.parameter @model.embed_tokens.weight {{.*}} {aliases = ["lm_head.weight"], layer = "model.embed"}
// QWEN: ft.rms_norm %x, %input_layernorm.weight eps 1.0e-06
// QWEN: %q = ft.matmul %{{.*}}, %q_proj.weight bias %q_proj.bias transpose_b
// QWEN: ft.rope %q heads 14 base 1000000.0
