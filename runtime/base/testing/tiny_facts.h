// Facts of a small model, for tests.
#pragma once

#include "runtime/base/model_facts.h"

namespace ft {

inline ModelFacts TinyLlamaFacts() {
  ModelFacts facts;
  facts.model_type = "llama";
  facts.vocab_size = 256;
  facts.hidden_size = 64;
  facts.num_layers = 2;
  facts.num_heads = 4;
  facts.num_kv_heads = 2;
  facts.head_size = 16;
  facts.intermediate_size = 176;
  facts.max_positions = 64;
  facts.rope_theta = 1e4;
  facts.norm_eps = 1e-5;
  facts.activation = "silu";
  facts.gated_mlp = true;
  return facts;
}

}  // namespace ft
