// A config.json as the facts of a model that is to be built: taken whole, or refused in one line.
#include "runtime/checkpoint/config_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/testing/known_configs.h"

namespace ft {
namespace {

using namespace known_configs;  // NOLINT: it is for these tests
using nlohmann::json;

class ConfigFileTest : public testing::Test {
 protected:
  absl::StatusOr<ModelFacts> Read(const std::string& name, const std::function<void(json&)>& change,
                                  const std::string& version = "v5") {
    json config = json::parse(TempFolder::Read(PathOf(version, name)));
    change(config);
    return ReadConfigFile(folder_.Write("config.json", config.dump()));
  }
  std::string Error(const std::string& name, const std::function<void(json&)>& change) {
    const auto facts = Read(name, change);
    EXPECT_EQ(facts.status().code(), absl::StatusCode::kInvalidArgument);
    std::string message(facts.status().message());
    EXPECT_TRUE(message.starts_with("'" + path_ + "': ")) << message;
    return message.substr(std::min(message.size(), path_.size() + 4));
  }

  TempFolder folder_;
  const std::string path_ = folder_.Path("config.json");
};

TEST_F(ConfigFileTest, FactsAreThoseOfTheModel) {
  for (const char* version : kVersions) {
    ModelFacts facts = *Read("llama", [](json&) {}, version);
    EXPECT_EQ(facts, Llama()) << version;
    facts = *Read("gpt2", [](json&) {}, version);
    EXPECT_EQ(facts, Gpt2()) << version;
  }
}

TEST_F(ConfigFileTest, WhatIsNotUnderstoodIsNamed) {
  EXPECT_EQ(Error("llama", [](json& c) { c["mlp_scale"] = 2; }),
            "\"mlp_scale\" is 2, which is not understood");
  EXPECT_EQ(Error("llama", [](json& c) { c["rope_parameters"]["rotation"] = 1; }),
            "\"rope_parameters.rotation\" is 1, which is not understood");
  EXPECT_EQ(Error("llama",
                  [](json& c) {
                    c["hidden_size"] = -4;
                    c["vocab_size"] = "many";
                  }),
            "vocab_size is \"many\", expected a whole number; hidden_size is -4, expected a positive number");
  EXPECT_EQ(Error("llama", [](json& c) { c["is_causal"] = false; }),
            "is_causal is false, which is not understood");
  EXPECT_EQ(Error("llama", [](json& c) { c["pad_token_id"] = 256; }),
            "pad_token_id is 256, which is no token of 256");
  EXPECT_EQ(Error("llama_yarn", [](json& c) { c["rope_parameters"]["truncate"] = false; }),
            "truncate of rope is false, which is not understood");
  EXPECT_NE(Error("llama", [](json& c) { c["model_type"] = "mamba"; })
                .find("model_type is \"mamba\", which is not known"),
            std::string::npos);
  EXPECT_EQ(Error("llama", [](json& c) { c.erase("model_type"); }), "it does not say its model_type");
  EXPECT_EQ(Error("bert", [](json& c) { c["is_decoder"] = true; }),
            "is_decoder is true, which is not understood");
  // Many faults are not all shown.
  const std::string many = Error("llama", [](json& c) {
    for (int i = 0; i < 20; ++i) c["key" + std::to_string(i)] = 1;
  });
  EXPECT_TRUE(many.ends_with("; ...")) << many;
}

TEST_F(ConfigFileTest, TheHeadIsThatOfTheClass) {
  EXPECT_EQ(Error("llama", [](json& c) { c["architectures"] = {"LlamaForSequenceClassification"}; }),
            "architectures is \"LlamaForSequenceClassification\"; models of LlamaForCausalLM are built");
  EXPECT_TRUE(Read("llama", [](json& c) { c.erase("architectures"); }).ok());
  EXPECT_EQ(Read("bert_classifier", [](json&) {})->num_labels, 3);
  EXPECT_EQ(Read("bert", [](json&) {})->num_labels, 0);
  EXPECT_EQ(Error("bert", [](json& c) { c.erase("architectures"); }),
            "it does not say num_labels; architectures should be one of BertForMaskedLM, "
            "BertForSequenceClassification");
  EXPECT_EQ(Error("roberta_classifier", [](json& c) { c["classifier_dropout"] = 0.5; }),
            "classifier_dropout is 0.5 and hidden_dropout_prob 0; one rate for both is understood");
}

// Transformers computes another loss for these, or others windows and scores than the key says.
TEST_F(ConfigFileTest, WhatMakesAnotherLossIsRefused) {
  for (const char* name : {"bert_classifier", "roberta_classifier", "vit"}) {
    EXPECT_EQ(Error(name, [](json& c) { c["problem_type"] = "multi_label_classification"; }),
              "problem_type is multi_label_classification, whose loss is another one; "
              "single_label_classification is understood");
    EXPECT_EQ(Error(name, [](json& c) { c["id2label"] = {{"0", "LABEL_0"}}; }),
              "there is one label, for which transformers trains a regression, which is not understood");
    EXPECT_TRUE(Read(name, [](json& c) { c["problem_type"] = "single_label_classification"; }).ok());
  }
  EXPECT_TRUE(Read("bert", [](json& c) { c["problem_type"] = "regression"; }).ok());
  EXPECT_EQ(
      Error("gemma3", [](json& c) { c["attn_logit_softcapping"] = 30.0; }),
      "attn_logit_softcapping is 30, which transformers does not apply in a Gemma 3; null is understood");
  const auto windowed = [](json& c) {
    c["use_sliding_window"] = true;
    c["sliding_window"] = 16;
    c.erase("layer_types");
  };
  EXPECT_EQ(Error("qwen3_moe",
                  [&](json& c) {
                    windowed(c);
                    c.erase("max_window_layers");
                  }),
            "use_sliding_window is true and max_window_layers 28: versions of transformers differ in which "
            "layers have the window then; 0 is understood");
  const auto facts = Read("qwen3_moe", [&](json& c) {
    windowed(c);
    c["max_window_layers"] = 0;
  });
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->sliding_window, 16);
  EXPECT_TRUE(facts->sliding_layers.empty());  // all
}

// PyTorch counts a negative number from the end; transformers' classes have defaults of their own.
TEST_F(ConfigFileTest, PaddingTokens) {
  const auto padding = [&](const std::string& name, const std::function<void(json&)>& change) {
    const auto facts = Read(name, change);
    EXPECT_TRUE(facts.ok()) << facts.status();
    return facts.ok() ? facts->padding_token : -2;
  };
  EXPECT_EQ(padding("llama", [](json& c) { c["pad_token_id"] = nullptr; }), -1);
  EXPECT_EQ(padding("llama", [](json& c) { c.erase("pad_token_id"); }), -1);
  EXPECT_EQ(padding("llama", [](json& c) { c["pad_token_id"] = 3; }), 3);
  EXPECT_EQ(padding("llama", [](json& c) { c["pad_token_id"] = -1; }), 255);
  EXPECT_EQ(padding("gemma2", [](json& c) { c.erase("pad_token_id"); }), 0);
  EXPECT_EQ(padding("olmo2", [](json& c) { c.erase("pad_token_id"); }), 1);
  EXPECT_EQ(padding("gpt2", [](json& c) { c["pad_token_id"] = 3; }), -1);
}

// A loss of the router is trained where its logits are put out.
TEST_F(ConfigFileTest, RouterLoss) {
  EXPECT_EQ(Read("mixtral", [](json&) {})->router_loss, 0.02);
  EXPECT_EQ(Read("mixtral", [](json& c) { c["output_router_logits"] = false; })->router_loss, 0);
}

TEST_F(ConfigFileTest, LongRope) {
  for (const char* version : kVersions) {
    const auto facts = Read("phi3_longrope", [](json&) {}, version);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(facts->rope_type, "longrope");
    EXPECT_EQ(facts->rope_original_positions, 32);
    EXPECT_EQ(facts->rope_factor, 2);
    EXPECT_EQ(facts->rope_long_factors, std::vector<double>(8, 2.0));
  }
  // The name that it had first.
  const auto facts = Read("phi3_longrope", [](json& c) { c["rope_scaling"]["type"] = "su"; }, "v4");
  EXPECT_EQ(facts->rope_type, "longrope");
}

}  // namespace
}  // namespace ft
