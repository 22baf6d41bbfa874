// Files that transformers wrote against the facts of models.
#include "runtime/checkpoint/compare_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/testing/known_configs.h"

namespace ft {
namespace {

using namespace known_configs;  // NOLINT: it is for these tests

void ExpectDiffers(const std::string& name, const ModelFacts& model, const Lines& v4, const Lines& v5) {
  EXPECT_EQ(Compare(PathOf("v4", name), model).differences, v4) << name;
  EXPECT_EQ(Compare(PathOf("v5", name), model).differences, v5) << name;
}

TEST(CompareConfigTest, TheModelItself) {
  ExpectIs("gpt2", Gpt2());
  ExpectIs("gpt2_inner", With(Gpt2(), [](ModelFacts& f) { f.intermediate_size = 100; }));
  ExpectIs("llama", Llama());
  ExpectIs("llama_tied", With(Llama(), [](ModelFacts& f) { f.tied_head = true; }));
  ExpectIs("llama_theta", With(Llama(), [](ModelFacts& f) { f.rope_theta = 5e5; }));
  ExpectIs("llama_biases",
           With(Llama(), [](ModelFacts& f) { f.qkv_bias = f.attention_output_bias = f.mlp_bias = true; }));
  ExpectIs("llama_head_size", With(Llama(), [](ModelFacts& f) { f.head_size = 32; }));
  ExpectIs("mistral_no_window", Llama());
  ExpectIs("mistral_window", With(Llama(), [](ModelFacts& f) { f.sliding_window = 16; }));
  ExpectIs("qwen2", Qwen2());
  ExpectIs("qwen2_untied", With(Qwen2(), [](ModelFacts& f) { f.tied_head = false; }));
  ExpectIs("qwen2_window", With(Qwen2(), [](ModelFacts& f) {
             f.sliding_window = 16;
             f.sliding_layers = {1};
           }));
  ExpectIs("qwen3", With(Qwen2(), [](ModelFacts& f) {
             f.qkv_bias = false;
             f.qk_norm = "head";
           }));
}

TEST(CompareConfigTest, ModelsOfOtherFamilies) {
  ExpectIs("llama3_scaled", With(Llama(), [](ModelFacts& f) {
             f.rope_theta = 5e5;
             f.rope_type = "llama3";
             f.rope_factor = 8;
             f.rope_low_freq_factor = 1;
             f.rope_high_freq_factor = 4;
             f.rope_original_positions = 32;
           }));
  ExpectIs("llama_linear", With(Llama(), [](ModelFacts& f) {
             f.rope_type = "linear";
             f.rope_factor = 4;
           }));
  ExpectIs("llama_yarn", With(Llama(), [](ModelFacts& f) {
             f.rope_type = "yarn";
             f.rope_factor = 4;
             f.rope_original_positions = 16;
             f.rope_beta_fast = 32;
             f.rope_beta_slow = 1;
           }));
  const ModelFacts gemma = With(Llama(), [](ModelFacts& f) {
    f.norm = "rms_norm_plus_one";
    f.activation = "gelu_tanh";
    f.tied_head = true;
    f.embedding_multiplier = 8;
  });
  ExpectIs("gemma", gemma);
  ExpectIs("gemma2", With(gemma, [](ModelFacts& f) {
             f.norm_eps = 1e-6;
             f.norm_placement = "both";
             f.sliding_window = 16;
             f.sliding_layers = {0};
             f.attention_scale = 1.0 / 16;
             f.attention_softcap = 50;
             f.logit_softcap = 30;
           }));
  ExpectIs("granite", With(Llama(), [](ModelFacts& f) {
             f.embedding_multiplier = 12;
             f.residual_multiplier = 0.22;
             f.logit_multiplier = 1.0 / 8;
             f.attention_scale = 0.015625;
           }));
  ExpectIs("smollm3", With(Llama(), [](ModelFacts& f) {
             f.num_layers = 4;
             f.rope_theta = 2e6;
             f.tied_head = true;
             f.layers_without_rope = {3};
           }));
}

TEST(CompareConfigTest, EveryDifferenceIsNamed) {
  ExpectDiffers("gpt2_other", Gpt2(),
                {"layer_norm_epsilon is 1e-06, the model's norm_eps is 1e-05",
                 "activation_function is \"gelu\", the model's activation is \"gelu_tanh\"",
                 "tie_word_embeddings is false, the model's tied_head is true",
                 "scale_attn_weights is false (attention_scale 1), the model's attention_scale is 0",
                 "scale_attn_by_inverse_layer_idx is true, the model's attention_scale_by_layer is false"},
                {"layer_norm_epsilon is 1e-06, the model's norm_eps is 1e-05",
                 "activation_function is \"gelu\", the model's activation is \"gelu_tanh\"",
                 "tie_word_embeddings is false, the model's tied_head is true",
                 "scale_attn_weights is false (attention_scale 1), the model's attention_scale is 0",
                 "scale_attn_by_inverse_layer_idx is true, the model's attention_scale_by_layer is false"});
  ExpectDiffers("llama_theta", Llama(), {"rope_theta is 500000.0, the model's rope_theta is 10000"},
                {"rope_parameters.rope_theta is 500000.0, the model's rope_theta is 10000"});
  ExpectDiffers(
      "llama3_scaled", With(Llama(), [](ModelFacts& f) { f.rope_theta = 5e5; }),
      {"rope_scaling.rope_type is \"llama3\", the model's rope_type is \"default\"",
       "rope_scaling.factor is 8.0, the model's rope_factor is 1",
       "rope_scaling.low_freq_factor is 1.0, the model's rope_low_freq_factor is 0",
       "rope_scaling.high_freq_factor is 4.0, the model's rope_high_freq_factor is 0",
       "rope_scaling.original_max_position_embeddings is 32, the model's rope_original_positions is 0"},
      {"rope_parameters.rope_type is \"llama3\", the model's rope_type is \"default\"",
       "rope_parameters.factor is 8.0, the model's rope_factor is 1",
       "rope_parameters.low_freq_factor is 1.0, the model's rope_low_freq_factor is 0",
       "rope_parameters.high_freq_factor is 4.0, the model's rope_high_freq_factor is 0",
       "rope_parameters.original_max_position_embeddings is 32, the model's rope_original_positions is "
       "0"});
  const Lines window = {"sliding_window is 16, the model's sliding_window is 0"};
  ExpectDiffers("mistral_window", Llama(), window, window);
  ExpectDiffers("qwen2_window", Qwen2(), window, window);
  const Lines qwen = {"qk_norm is \"head\" in every qwen3, the model's qk_norm is \"none\""};
  ExpectDiffers("qwen3", With(Qwen2(), [](ModelFacts& f) { f.qkv_bias = false; }), qwen, qwen);
  const Lines head = {"head_dim is 32, the model's head_size is 16"};
  ExpectDiffers("llama_head_size", Llama(), head, head);
  const Lines biases = {"attention_bias is true, the model's qkv_bias is false",
                        "attention_bias is true, the model's attention_output_bias is false",
                        "mlp_bias is true, the model's mlp_bias is false"};
  ExpectDiffers("llama_biases", Llama(), biases, biases);
}

TEST(CompareConfigTest, FamiliesWhoseKeysAreNotKnown) {
  TempFolder folder;
  const std::string path = folder.Write("config.json", R"({"model_type": "nobody"})");
  const Lines differences = Compare(path, Llama()).differences;
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_TRUE(differences[0].starts_with("model_type is \"nobody\", whose keys are not known"))
      << differences[0];
}

// A model of every other value of every fact: each is found, or is among those that change nothing.
TEST(CompareConfigTest, EveryFactIsCompared) {
  for (const FactField& field : FactFields()) {
    ModelFacts model = Llama();
    FactValue value = GetFact(model, field);
    if (auto* text = std::get_if<std::string>(&value)) *text += "x";
    if (auto* flag = std::get_if<bool>(&value)) *flag = !*flag;
    if (auto* number = std::get_if<int64_t>(&value)) *number += 7;
    if (auto* real = std::get_if<double>(&value)) *real += 0.25;
    if (auto* list = std::get_if<std::vector<int64_t>>(&value)) *list = {1};
    if (auto* list = std::get_if<std::vector<double>>(&value)) *list = {1.5};
    SetFact(model, field, value);
    if (field.name == "sliding_layers") model.sliding_window = 3;
    for (const char* version : kVersions) {
      const ConfigComparison result = Compare(PathOf(version, "llama"), model);
      const std::string all = fmt::format("{}", fmt::join(result.differences, "; "));
      const bool dropout = field.name.ends_with("_dropout") || field.name == "router_loss";
      EXPECT_EQ(result.notes.size(), dropout ? 1u : 0u) << field.name;
      if (dropout || field.name == "model_type" || field.name == "max_positions" ||
          field.name == "padding_token") {
        EXPECT_EQ(all, "") << field.name;
      } else {
        EXPECT_NE(all.find("the model's " +
                           std::string(field.name == "sliding_layers" ? "sliding_window" : field.name)),
                  std::string::npos)
            << field.name << ": " << all;
      }
    }
  }
}

TEST(CompareConfigTest, Dropout) {
  const ModelFacts model =
      With(Gpt2(), [](ModelFacts& f) { f.embedding_dropout = f.residual_dropout = f.attention_dropout = 0; });
  for (const char* version : kVersions) {
    const ConfigComparison result = Compare(PathOf(version, "gpt2"), model);
    EXPECT_EQ(result.differences, Lines());
    EXPECT_EQ(result.notes,
              Lines{"is trained differently: embd_pdrop is 0.1, the model's embedding_dropout is 0; "
                    "resid_pdrop is 0.1, the model's residual_dropout is 0; attn_pdrop is 0.1, the model's "
                    "attention_dropout is 0"});
  }
}

TEST(CompareConfigTest, WindowsAndPositionsByTheSequence) {
  for (const char* version : kVersions) {
    // A window of 4096, mistral's default.
    ConfigComparison result = Compare(PathOf(version, "mistral"), Llama());
    EXPECT_EQ(result.differences, Lines());
    EXPECT_EQ(result.notes, Lines{"has sequences of 64, in which a sliding window of 4096 hides nothing"});
    EXPECT_EQ(Compare(PathOf(version, "mistral"), Llama(), 4097).differences.size(), 1u);
    EXPECT_EQ(Compare(PathOf(version, "mistral"), Llama(), 4096).differences, Lines());
    EXPECT_EQ(Compare(PathOf(version, "mistral_window"), Llama(), 16).differences, Lines());
    EXPECT_EQ(Compare(PathOf(version, "mistral_window"), Llama(), 17).differences.size(), 1u);

    result = Compare(PathOf(version, "llama"), Llama(), 65);
    EXPECT_EQ(result.differences, Lines());
    EXPECT_EQ(result.notes,
              Lines{"has sequences of 65, the weights are of a model for 64 (max_position_embeddings)"});
    const auto longer = [](ModelFacts& f) { f.max_positions = 128; };
    ExpectIs("llama", With(Llama(), longer));  // computed positions end nowhere
    EXPECT_EQ(Compare(PathOf(version, "gpt2"), With(Gpt2(), longer)).differences,
              Lines{"n_positions is 64, the model's max_positions is 128"});
  }
}

}  // namespace
}  // namespace ft
