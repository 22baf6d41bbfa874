// config.json files of test/hf_configs, and the facts of the models in them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/testing/tiny_facts.h"
#include "runtime/checkpoint/compare_config.h"

namespace ft::known_configs {

using Lines = std::vector<std::string>;

// As these major versions of transformers write them.
inline constexpr const char* kVersions[] = {"v4", "v5"};

inline std::string PathOf(const std::string& version, const std::string& name) {
  return fmt::format("{}/{}/{}.json", FT_HF_CONFIGS, version, name);
}

// The models of the files, without what the names say.
inline ModelFacts Gpt2() {
  ModelFacts facts;
  facts.model_type = "gpt2";
  facts.vocab_size = 256;
  facts.hidden_size = 64;
  facts.num_layers = 2;
  facts.num_heads = facts.num_kv_heads = 4;
  facts.head_size = 16;
  facts.intermediate_size = 256;
  facts.max_positions = 64;
  facts.positions = "learned";
  facts.norm = "layer_norm";
  facts.norm_eps = 1e-5;
  facts.activation = "gelu_tanh";
  facts.qkv_bias = facts.attention_output_bias = facts.mlp_bias = facts.tied_head = true;
  facts.embedding_dropout = facts.residual_dropout = facts.attention_dropout = 0.1;
  return facts;
}

inline ModelFacts Llama() { return TinyLlamaFacts(); }

inline ModelFacts Qwen2() {
  ModelFacts facts = Llama();
  facts.model_type = "qwen2";
  facts.rope_theta = 1e6;
  facts.norm_eps = 1e-6;
  facts.qkv_bias = true;
  facts.tied_head = true;
  return facts;
}

inline ConfigComparison Compare(const std::string& path, const ModelFacts& model, int64_t seq_len = 64) {
  const auto result = CompareConfig(path, model, seq_len);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : ConfigComparison();
}

// Expects that both spellings of a file are of `model`.
inline void ExpectIs(const std::string& name, const ModelFacts& model) {
  for (const char* version : kVersions) {
    const ConfigComparison result = Compare(PathOf(version, name), model);
    EXPECT_EQ(result.differences, Lines()) << version << " " << name;
    EXPECT_EQ(result.notes, Lines()) << version << " " << name;
  }
}

inline ModelFacts With(ModelFacts facts, const std::function<void(ModelFacts&)>& change) {
  change(facts);
  return facts;
}

}  // namespace ft::known_configs
