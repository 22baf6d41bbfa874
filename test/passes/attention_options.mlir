// RUN: ftc compile %s --strategy=full_shard --dump=autodiff | FileCheck %s
// RUN: ftc compile %s --strategy=full_shard --mixed-precision=bf16 --remat=full --dump=schedule | FileCheck %s --check-prefix=LOWERED

// Lengths are held to 0 ... T where data is read; ids of segments are any.
// CHECK: ids_below = 17 : i64, may_be_left_out = false, name = "lengths", type = tensor<2xi32>
// CHECK-NEXT: ids_below = 0 : i64, may_be_left_out = false, name = "segments", type = tensor<2x16xi32>

// The gradient is told what forward was, and draws the same numbers; evaluation draws none, and reads no rng.
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[RNG:.*]] = ft.input "rng"
// CHECK: ft.qkv_attention %{{.*}} lengths %[[N:.*]] segments %[[S:.*]] dropout 2.500000e-01 rng %[[RNG]] stream 7 heads 4 kv_heads 2 causal
// CHECK: ft.qkv_attention_grad %{{.*}} lengths %[[N]] segments %[[S]] dropout 2.500000e-01 rng %[[RNG]] stream 7 heads 4 kv_heads 2 causal
// CHECK-LABEL: func.func @eval_step(
// CHECK-NOT: = ft.input
// CHECK: ft.qkv_attention %{{.*}} lengths %{{.*}} segments %{{.*}} heads 4 kv_heads 2 causal {

// Absent operands keep their places, and attributes are absent.
// LOWERED-LABEL: ftx.program @train_step
// LOWERED-COUNT-2: ftx.kernel "qkv_attention"{{.*}}rate = 2.500000e-01{{.*}}stream = 7
// LOWERED: ftx.kernel "qkv_attention_grad"{{.*}}rate = 2.500000e-01{{.*}}stream = 7
// LOWERED-LABEL: ftx.program @eval_step
// LOWERED: ftx.kernel "qkv_attention"
// LOWERED-NOT: rate

module {
  ft.parameter @embed : tensor<256x16xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  ft.parameter @proj : tensor<16x16xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  ft.parameter @qkv : tensor<16x32xf32> = #ft.init<normal, 0.02> {layer = "h.0"}
  func.func @forward(%tokens: tensor<2x16xi32> {ft.input = "tokens"}, %targets: tensor<2x16xi32> {ft.input = "targets"},
                     %lengths: tensor<2xi32> {ft.input = "lengths"}, %segments: tensor<2x16xi32> {ft.input = "segments"}) -> tensor<f32> {
    %rng = ft.input "rng" {layer = "h.0"} : tensor<3xi64>
    %table = ft.get @embed {layer = "h.0"} : tensor<256x16xf32>
    %x = ft.embedding %tokens, %table {layer = "h.0"} : (tensor<2x16xi32>, tensor<256x16xf32>) -> tensor<2x16x16xf32>
    %w = ft.get @qkv {layer = "h.0"} : tensor<16x32xf32>
    %y = ft.matmul %x, %w {layer = "h.0"} : (tensor<2x16x16xf32>, tensor<16x32xf32>) -> tensor<2x16x32xf32>
    %q, %k, %v = ft.split %y {layer = "h.0"} : tensor<2x16x32xf32> -> tensor<2x16x16xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>
    %out, %lse = ft.attention %q, %k, %v lengths %lengths segments %segments dropout 0.25 rng %rng stream 7 heads 4 kv_heads 2 causal {layer = "h.0"} : (tensor<2x16x16xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<2xi32>, tensor<2x16xi32>, tensor<3xi64>) -> (tensor<2x16x16xf32>, tensor<2x4x16xf32>)
    %p = ft.get @proj {layer = "h.0"} : tensor<16x16xf32>
    %z = ft.matmul %out, %p {layer = "h.0"} : (tensor<2x16x16xf32>, tensor<16x16xf32>) -> tensor<2x16x16xf32>
    %logits = ft.matmul %z, %table transpose_b {layer = "head"} : (tensor<2x16x16xf32>, tensor<256x16xf32>) -> tensor<2x16x256xf32>
    %loss = ft.cross_entropy %logits, %targets {layer = "head"} : (tensor<2x16x256xf32>, tensor<2x16xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
