// Where an op says what a fact says, both must say the same: each edit of a good model is refused, at the op or the fact.

// RUN: ftc model llama -o %t.mlir
// RUN: ftc compile %t.mlir --strategy=no_shard -o %t.bin
// RUN: ftc dump %t.bin | FileCheck %s --check-prefix=PLAN
// PLAN: facts of the model
// PLAN-NEXT: model_type = "llama"
// PLAN-NEXT: vocab_size = 256
// PLAN: rope_theta = 10000
// PLAN: norm_eps = 1e-05
// PLAN: gated_mlp = 1

// RUN: sed 's/eps 1.0e-05/eps 1.0e-06/' %t.mlir > %t.1.mlir && not ftc compile %t.1.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=EPS
// EPS: error: 'ft.facts' says that norm_eps is 1e-05, but here it is 1e-06; change one of them
// RUN: sed 's/norm_eps = 1.000000e-05/norm_eps = 1.000000e-03/' %t.mlir > %t.2.mlir && not ftc compile %t.2.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=FACT
// FACT: error: 'ft.facts' says that norm_eps is 0.001, but here it is 1e-05
// RUN: sed 's/base 10000.0/base 500000.0/' %t.mlir > %t.3.mlir && not ftc compile %t.3.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=ROPE
// ROPE: error: 'ft.facts' says that rope_theta is 10000, but here it is 500000
// RUN: sed 's/num_kv_heads = 2/num_kv_heads = 4/' %t.mlir > %t.4.mlir && not ftc compile %t.4.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: error: 'ft.facts' says that num_kv_heads is 4, but here it is 2
// RUN: sed 's/activation = "silu"/activation = "gelu_tanh"/' %t.mlir > %t.5.mlir && not ftc compile %t.5.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=ACT
// ACT: error: 'ft.facts' says that activation is "gelu_tanh", but here it is "silu"
// RUN: sed 's/num_layers = 2/num_layers = 3/' %t.mlir > %t.6.mlir && not ftc compile %t.6.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=LAYERS
// LAYERS: error: 'ft.facts' says that num_layers is 3, but here it is 2
// RUN: sed 's/model_type = "llama"/model_type = "llama", tied_head = true/' %t.mlir > %t.7.mlir && not ftc compile %t.7.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=TIED
// TIED: error: 'ft.facts' says that tied_head is true, but here it is false
// RUN: sed 's/model_type = "llama"/model_type = "mistral", sliding_window = 16 : i64/' %t.mlir > %t.8.mlir && not ftc compile %t.8.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=WINDOW
// WINDOW: error: 'ft.facts' says that sliding_window is 16, but here it is 0
// Windows are said of all layers, or of some; the model below has 16 in both, then in the first only.
// RUN: sed 's/kv_heads 2 causal/kv_heads 2 causal window 16/' %t.mlir > %t.all.mlir && not ftc compile %t.all.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=NO-WINDOW
// NO-WINDOW: error: 'ft.facts' says that sliding_window is 0, but here it is 16; change one of them
// RUN: sed 's/model_type = "llama"/model_type = "mistral", sliding_window = 16 : i64/' %t.all.mlir > %t.ok.mlir && ftc compile %t.ok.mlir --strategy=no_shard -o %t.bin
// RUN: ftc dump %t.bin | FileCheck %s --check-prefix=WINDOW-PLAN
// WINDOW-PLAN: sliding_window = 16
// RUN: sed 's/sliding_window = 16/sliding_window = 8/' %t.ok.mlir > %t.w1.mlir && not ftc compile %t.w1.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=WIDTH
// WIDTH: error: 'ft.facts' says that sliding_window is 8, but here it is 16
// RUN: sed 's/sliding_window = 16/sliding_layers = array<i64: 0>, sliding_window = 16/' %t.ok.mlir > %t.w2.mlir && not ftc compile %t.w2.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=LAYER
// LAYER: error: 'ft.facts' says that sliding_layers is [0], but here, in layer 1, there is one; change one of them
// RUN: sed '/layers.1"/s/window 16 //' %t.w2.mlir > %t.w3.mlir && ftc compile %t.w3.mlir --strategy=no_shard -o %t.bin
// RUN: sed 's/array<i64: 0>/array<i64: 0, 1>/' %t.w3.mlir > %t.w4.mlir && not ftc compile %t.w4.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=NO-LAYER
// NO-LAYER: error: 'ft.facts' says that sliding_layers is [0, 1], but here, in layer 1, there is no window; change one of them

// Of a head of 16 elements 0.25 is the usual scale.
// RUN: sed 's/kv_heads 2 causal/kv_heads 2 causal scale 0.25/' %t.mlir > %t.s1.mlir && ftc compile %t.s1.mlir --strategy=no_shard -o %t.bin
// RUN: sed 's/kv_heads 2 causal/kv_heads 2 causal scale 0.125/' %t.mlir > %t.s2.mlir && not ftc compile %t.s2.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=SCALE
// SCALE: error: 'ft.facts' says that attention_scale is 0, but here it is 0.125
// RUN: sed 's/model_type = "llama"/model_type = "granite", attention_scale = 0.125/' %t.s2.mlir > %t.s3.mlir && ftc compile %t.s3.mlir --strategy=no_shard -o %t.bin
// RUN: sed 's/model_type = "llama"/model_type = "gemma2", attention_softcap = 50.0/' %t.mlir > %t.c1.mlir && not ftc compile %t.c1.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=SOFTCAP
// SOFTCAP: error: 'ft.facts' says that attention_softcap is 50, but here it is 0
// RUN: sed 's/kv_heads 2 causal/kv_heads 2 causal softcap 50.0/' %t.c1.mlir > %t.c2.mlir && ftc compile %t.c2.mlir --strategy=no_shard -o %t.bin
// RUN: sed 's/kv_heads 2 causal/kv_heads 2 causal alibi/' %t.mlir > %t.a.mlir && not ftc compile %t.a.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=ALIBI
// ALIBI: error: 'ft.facts' cannot say that attention has alibi; remove 'ft.facts' or alibi

// RUN: sed 's/model_type = "llama"/model_type = "llama", positions = "learned"/' %t.mlir > %t.9.mlir && not ftc compile %t.9.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=POSITIONS
// POSITIONS: error: 'ft.facts' says that positions is "learned", but here it is "rope"
// RUN: sed 's/, vocab_size = 256/, vocab_size = 257/' %t.mlir > %t.10.mlir && not ftc compile %t.10.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=VOCAB
// VOCAB: error: 'ft.facts' says that vocab_size is 257, but here it is 256
// RUN: sed 's/hidden_size = 64/hidden_size = 128/' %t.mlir > %t.11.mlir && not ftc compile %t.11.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: error: 'ft.facts' says that hidden_size is 128, but here it is 64
// RUN: sed 's/norm_eps =/norm = "layer_norm", norm_eps =/' %t.mlir > %t.12.mlir && not ftc compile %t.12.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=NORM
// NORM: error: 'ft.facts' says that norm is "layer_norm", but here it is "rms_norm"

// RUN: ftc model gpt2 --dropout=0.1 -o %t.gpt2.mlir && ftc compile %t.gpt2.mlir --strategy=no_shard -o %t.bin
// RUN: sed 's/rate 0.1/rate 0.2/' %t.gpt2.mlir > %t.13.mlir && not ftc compile %t.13.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=RATE
// RATE: error: 'ft.facts' says that residual_dropout is 0.1, but here it is 0.2
// RUN: sed 's/ dropout 1.000000e-01 rng/ dropout 2.000000e-01 rng/' %t.gpt2.mlir > %t.17.mlir && not ftc compile %t.17.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=PROBABILITIES
// PROBABILITIES: error: 'ft.facts' says that attention_dropout is 0.1, but here it is 0.2
// RUN: sed 's/max_positions = 64/max_positions = 65/' %t.gpt2.mlir > %t.14.mlir && not ftc compile %t.14.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: 'ft.facts' says that max_positions is 65, but here it is 64
// RUN: sed 's/approximate "tanh"/approximate "none"/' %t.gpt2.mlir > %t.15.mlir && not ftc compile %t.15.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=GELU
// GELU: error: 'ft.facts' says that activation is "gelu_tanh", but here it is "gelu"

// Without facts a model says nothing that could be wrong.
// RUN: sed 's/ft.facts = {[^}]*}, //; s/eps 1.0e-05/eps 1.0e-06/' %t.mlir > %t.16.mlir && ftc compile %t.16.mlir --strategy=no_shard -o %t.bin
// RUN: ftc dump %t.bin | FileCheck %s --check-prefix=NONE
// NONE-NOT: facts of the model
