// Files that transformers wrote, changed by hand or damaged.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/compare_config.h"
#include "runtime/checkpoint/testing/known_configs.h"

namespace ft {
namespace {

using namespace known_configs;  // NOLINT: it is for these tests
using nlohmann::json;

class EditedConfigTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) { return folder_.Write("config.json", text); }
  Lines Differences(const json& config, const ModelFacts& model) {
    return Compare(Write(config.dump()), model).differences;
  }
  std::string Error(const std::string& text) {
    const absl::Status status = CompareConfig(Write(text), Llama(), 64).status();
    EXPECT_EQ(ExitStatus(status), kExitBadInput) << status;
    EXPECT_LT(status.message().size(), 300u);
    return std::string(status.message());
  }
  static json Load(const std::string& name, const std::string& version = "v4") {
    return json::parse(TempFolder::Read(PathOf(version, name)));
  }

  TempFolder folder_;
  std::string path_ = folder_.Path("config.json");
};

// Of each key: the default of the family's class, in both versions of transformers.
TEST_F(EditedConfigTest, AbsentKeysHaveTheDefaultOfTheirFamily) {
  ModelFacts facts = Llama();
  facts.vocab_size = 32000;
  facts.hidden_size = 4096;
  facts.intermediate_size = 11008;
  facts.num_layers = facts.num_heads = facts.num_kv_heads = 32;
  facts.head_size = 128;
  facts.max_positions = 2048;
  facts.norm_eps = 1e-6;
  EXPECT_EQ(Differences({{"model_type", "llama"}}, facts), Lines());
  ExpectIs("llama_defaults", facts);

  facts.intermediate_size = 14336;
  facts.num_kv_heads = 8;
  facts.sliding_window = 4096;
  EXPECT_EQ(Compare(Write(R"({"model_type": "mistral"})"), facts, 8192).differences, Lines());
  facts.num_kv_heads = 32;
  EXPECT_EQ(
      Compare(Write(R"({"model_type": "mistral", "num_key_value_heads": null})"), facts, 8192).differences,
      Lines());
  facts.sliding_window = 0;
  EXPECT_EQ(
      Compare(Write(R"({"model_type": "mistral", "num_key_value_heads": null, "sliding_window": null})"),
              facts, 8192)
          .differences,
      Lines());

  facts.vocab_size = 151936;
  facts.intermediate_size = 22016;
  facts.qkv_bias = true;
  EXPECT_EQ(Compare(Write(R"({"model_type": "qwen2"})"), facts, 8192).differences, Lines());
  facts.qkv_bias = false;
  facts.qk_norm = "head";
  EXPECT_EQ(Compare(Write(R"({"model_type": "qwen3"})"), facts, 8192).differences, Lines());

  facts = Gpt2();
  facts.vocab_size = 50257;
  facts.hidden_size = 768;
  facts.intermediate_size = 3072;
  facts.num_layers = facts.num_heads = facts.num_kv_heads = 12;
  facts.head_size = 64;
  facts.max_positions = 1024;
  EXPECT_EQ(Differences({{"model_type", "gpt2"}}, facts), Lines());
  facts.norm_eps = 1e-6;
  EXPECT_EQ(
      Differences({{"model_type", "gpt2"}}, facts),
      Lines{"layer_norm_epsilon is not there, for a gpt2 that is norm_eps 1e-05, the model's norm_eps is "
            "1e-06"});
}

TEST_F(EditedConfigTest, KeysThatNobodyUnderstandsAreDifferences) {
  json config = Load("llama");
  config["logit_scale"] = 0.0625;
  config["quantization_config"] = {{"bits", 4}};
  config["auto_map"] = {{"AutoModel", "modeling_own.Own"}};
  config["rope_scaling"] = {{"rope_type", "default"}, {"short_factor", {1.0, 2.0}}};
  EXPECT_EQ(Differences(config, Llama()),
            (Lines{"\"auto_map\" is {\"AutoModel\":\"modeling_own.Own\"}, which is not understood",
                   "\"logit_scale\" is 0.0625, which is not understood",
                   "\"quantization_config\" is {\"bits\":4}, which is not understood",
                   "\"rope_scaling.short_factor\" is [1.0,2.0], which is not understood"}));
}

TEST_F(EditedConfigTest, KeysThatChangeNothingArePassedOver) {
  json config = Load("llama");
  for (const char* key : {"a", "b", "c", "d", "e"}) config[std::string("unknown_") + key] = nullptr;
  config["unknown_a"] = false;
  config["unknown_b"] = json::array();
  config["unknown_c"] = json::object();
  config["unknown_d"] = "";
  config["torch_dtype"] = "bfloat16";
  config["_name_or_path"] = "somewhere";
  config["temperature"] = 0.7;
  config["resid_dropout"] = 0.3;
  config["id2label"] = {{"0", "A"}};
  EXPECT_EQ(Differences(config, Llama()), Lines());
}

TEST_F(EditedConfigTest, BothSpellingsInOneFile) {
  json config = Load("llama");
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000}};
  EXPECT_EQ(Differences(config, Llama()), Lines());
  config["rope_theta"] = 500000;
  EXPECT_EQ(Differences(config, Llama()),
            Lines{"rope_theta is 500000 and rope_parameters.rope_theta is 10000"});
  config = Load("llama_linear");
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000}};
  EXPECT_NE(fmt::format("{}", fmt::join(Differences(config, Llama()), "; ")).find("both there"),
            std::string::npos);
  config = Load("llama_linear");
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};  // before 4.43
  EXPECT_EQ(Differences(config, With(Llama(),
                                     [](ModelFacts& f) {
                                       f.rope_type = "linear";
                                       f.rope_factor = 2;
                                     })),
            Lines());
  config["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}}}};
  config["rope_scaling"] = nullptr;
  EXPECT_EQ(Differences(config, Llama()).size(), 1u);  // one rope for each type of layer
}

TEST_F(EditedConfigTest, PartialRotation) {
  json config = Load("llama");
  config["partial_rotary_factor"] = 0.5;
  const Lines said = {"partial_rotary_factor is 0.5, the model's rope_fraction is 1"};
  EXPECT_EQ(Differences(config, Llama()), said);
  config = Load("llama", "v5");
  config["rope_parameters"]["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(Differences(config, Llama()),
            Lines{"rope_parameters.partial_rotary_factor is 0.5, the model's rope_fraction is 1"});
}

// What is fp32 when it is computed with needs to be equal as such only.
TEST_F(EditedConfigTest, RealNumbersAreThoseOfFp32) {
  json config = Load("llama");
  config["rms_norm_eps"] = 9.999999747378752e-06;
  config["rope_theta"] = 10000;
  EXPECT_EQ(Differences(config, Llama()), Lines());
  config["rms_norm_eps"] = 1.00001e-5;
  EXPECT_EQ(Differences(config, Llama()).size(), 1u);
}

TEST_F(EditedConfigTest, NamesOfOneActivation) {
  json config = Load("gpt2");
  for (const char* name :
       {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate", "gelu_python_tanh"}) {
    config["activation_function"] = name;
    EXPECT_EQ(Differences(config, Gpt2()), Lines()) << name;
  }
  for (const char* name : {"gelu", "quick_gelu", "relu", "silu"}) {
    config["activation_function"] = name;
    EXPECT_EQ(Differences(config, Gpt2()).size(), 1u) << name;
  }
  config = Load("llama");
  config["hidden_act"] = "swish";
  EXPECT_EQ(Differences(config, Llama()), Lines());
}

TEST_F(EditedConfigTest, ValuesOfAnotherType) {
  const auto first = [&](const char* key, const json& value) {
    json config = Load("llama");
    config[key] = value;
    const Lines differences = Differences(config, Llama());
    EXPECT_EQ(differences.size(), 1u) << fmt::format("{}", fmt::join(differences, "; "));
    return differences.empty() ? "" : differences[0];
  };
  EXPECT_EQ(first("hidden_size", "64"), "hidden_size is \"64\", expected a whole number");
  EXPECT_EQ(first("hidden_size", 64.0), "hidden_size is 64.0, expected a whole number");
  EXPECT_EQ(first("hidden_size", uint64_t{1} << 63),
            "hidden_size is 9223372036854775808, expected a smaller number");
  EXPECT_EQ(first("hidden_size", -64), "hidden_size is -64, expected a positive number");
  EXPECT_EQ(first("num_attention_heads", 0), "num_attention_heads is 0, expected a positive number");
  EXPECT_EQ(first("num_hidden_layers", nullptr), "num_hidden_layers is null, expected a number");
  EXPECT_EQ(first("rms_norm_eps", "small"), "rms_norm_eps is \"small\", expected a number");
  EXPECT_EQ(first("rms_norm_eps", nullptr), "rms_norm_eps is null, expected a number");
  EXPECT_EQ(first("tie_word_embeddings", 1), "tie_word_embeddings is 1, expected true or false");
  EXPECT_EQ(first("tie_word_embeddings", nullptr), "tie_word_embeddings is null, expected true or false");
  EXPECT_EQ(first("hidden_act", 5), "hidden_act is 5, expected a text");
  EXPECT_EQ(first("rope_scaling", 5), "rope_scaling is 5, expected an object");
  json config = Load("qwen2");
  config["layer_types"] = {"full_attention"};
  EXPECT_EQ(Differences(config, Qwen2()), Lines{"layer_types has 1 elements, but there are 2 layers"});
  config["layer_types"] = {"full_attention", "linear_attention"};
  EXPECT_EQ(Differences(config, Qwen2()),
            Lines{"layer_types has a \"linear_attention\", which is not understood"});
  config["layer_types"] = {1, 2};
  EXPECT_EQ(Differences(config, Qwen2()), Lines{"layer_types is [1,2], expected a list of texts"});
}

// As published files of old versions have them.
TEST_F(EditedConfigTest, KeysThatSayNothing) {
  json config = Load("llama");
  config.update({{"n_special", 0},
                 {"predict_special_tokens", true},
                 {"output_past", true},
                 {"max_sequence_length", 2048},
                 {"ignore_index", -100},
                 {"is_causal", true}});
  EXPECT_EQ(Differences(config, Llama()), Lines());
}

// What is off here is on where it is absent.
TEST_F(EditedConfigTest, AttentionThatIsNotCausal) {
  json config = Load("llama");
  config["is_causal"] = false;
  EXPECT_EQ(Differences(config, Llama()),
            Lines{"is_causal is false: its attention sees later positions, the model's does not"});
}

TEST_F(EditedConfigTest, NoModelType) {
  json config = Load("llama");
  for (const json& value : {json(nullptr), json(5), json("")}) {
    config["model_type"] = value;
    const ConfigComparison result = Compare(Write(config.dump()), Llama());
    EXPECT_EQ(result.differences.size(), 1u);
    EXPECT_EQ(result.no_model_type, !value.is_string());
  }
  config.erase("model_type");
  EXPECT_TRUE(Compare(Write(config.dump()), Llama()).no_model_type);
}

TEST_F(EditedConfigTest, HostileFiles) {
  EXPECT_EQ(Error(""), "'" + path_ + "' is not valid JSON at byte 0");
  EXPECT_EQ(Error("[1, 2]"), "'" + path_ + "' is no JSON object");
  EXPECT_EQ(Error("{\"rms_norm_eps\": NaN}"), "'" + path_ + "' is not valid JSON at byte 17");
  EXPECT_EQ(Error("{\"a\": 1e999}"), "'" + path_ + "' is not valid JSON: it has a number that is too large");
  EXPECT_NE(Error("{\"a\": \"\xff\"}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(Error(std::string("{\"a\": 1}\0", 9)).find("not valid JSON"), std::string::npos);
  EXPECT_NE(Error(std::string((16 << 20) + 1, ' ')).find("16777217 bytes"), std::string::npos);
  const std::string deep(1 << 20, '[');
  EXPECT_NE(Error(deep).find("not valid JSON"), std::string::npos);
  EXPECT_NE(Error("{\"a\": " + deep + std::string(1 << 20, ']') + "}").find("nests deeper"),
            std::string::npos);
  EXPECT_EQ(ExitStatus(CompareConfig(folder_.Path("none"), Llama(), 64).status()), kExitIo);
  EXPECT_EQ(ExitStatus(CompareConfig("/dev/zero", Llama(), 64).status()), kExitBadInput);
}

TEST_F(EditedConfigTest, WhatIsEchoedIsBounded) {
  json config = Load("llama");
  config["model_type"] = std::string(1 << 20, 'x');
  EXPECT_LT(Differences(config, Llama())[0].size(), 300u);
  config["model_type"] = "llama";
  config["two\nlines"] = std::string(1 << 20, 'x');
  config["hidden_act"] = std::string(1 << 20, '\n');
  config["rope_scaling"] = {{"rope_type", std::string(1 << 20, 'y')}, {"factor", std::string(1 << 20, 'z')}};
  config[std::string(1 << 20, 'k')] = std::vector<int>(1 << 20, 1);
  for (const std::string& line : Differences(config, Llama())) {
    EXPECT_LT(line.size(), 400u);
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace ft
