// RUN: ftc model free_transformer --layers=2 | FileCheck %s
// RUN: ftc model free_transformer | ft-opt -o /dev/null
// RUN: ftc model baseline | FileCheck %s --check-prefix=BASELINE
// RUN: ftc model baseline | ft-opt -o /dev/null

// CHECK: %queries = ft.broadcast %encoder.zeta {layer = "model.encoder"} : tensor<64xf32> -> tensor<4x64x64xf32>
// One weight normalises queries and keys.
// CHECK: ft.rms_norm %queries, %[[NORM:[^ ]*]] eps
// CHECK: ft.rms_norm %[[X:[^,]*]], %[[NORM]] eps
// The encoder sees the whole text.
// CHECK: ft.attention {{.*}} heads 4 kv_heads 4 {layer = "model.encoder"}
// CHECK: %bit_logits = ft.matmul %{{.*}}, %readout.weight transpose_b {layer = "model.encoder"} : (tensor<4x64x64xf32>, tensor<6x64xf32>) -> tensor<4x64x6xf32>
// CHECK: %rng = ft.input "rng"
// CHECK: %code = ft.sample_bits %bit_logits, %rng stream 1
// CHECK: %r = ft.binary_mapper %bit_logits, %code, %post_sampler.weight
// CHECK: %kl = ft.bits_kl %bit_logits kappa 0.34657359027997264
// CHECK: %told = ft.add %[[X]], %r {layer = "model.layers.1"}
// CHECK: ft.attention {{.*}} heads 4 kv_heads 4 causal {layer = "model.layers.1"}
// CHECK: %cross_entropy = ft.cross_entropy %logits, %targets
// CHECK: %[[KL:.*]] = ft.scale %kl, 1.0
// CHECK: %loss = ft.add %cross_entropy, %[[KL]]

// BASELINE-NOT: encoder
// BASELINE: return %loss
