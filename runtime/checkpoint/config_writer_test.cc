// What is written beside weights: in transformers' words, and back to the facts that it was made from.
#include "runtime/checkpoint/config_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/config_reader.h"
#include "runtime/checkpoint/inert_keys.h"
#include "runtime/checkpoint/testing/known_configs.h"

namespace ft {
namespace {

using namespace known_configs;  // NOLINT: it is for these tests
using nlohmann::json;

ModelFacts FactsOfFile(const json& config) {
  const auto type = config["model_type"].get<std::string>();
  const ConfigFamily* family = FindConfigFamily(type);
  if (family == nullptr) return {};
  ConfigReader reader(config, type);
  family->read(reader);
  EXPECT_EQ(reader.TakeFaults(), Lines());
  return reader.facts();
}

// Facts of each family, beside what transformers writes of such a model.
std::vector<std::pair<std::string, json>> FilesOfTransformers() {
  std::vector<std::pair<std::string, json>> files;
  for (const char* version : kVersions) {
    for (const auto& entry :
         std::filesystem::directory_iterator(fmt::format("{}/{}", FT_HF_CONFIGS, version))) {
      json config = json::parse(TempFolder::Read(entry.path().string()));
      if (FindConfigFamily(config["model_type"].get<std::string>()) == nullptr) continue;
      files.emplace_back(fmt::format("{} {}", version, entry.path().stem().string()), std::move(config));
    }
  }
  return files;
}

class ConfigWriterTest : public testing::Test {
 protected:
  // Empty, with a failure, when there is none.
  json Written(const ModelFacts& facts, DType dtype = DType::kF32) {
    const auto text = ConfigJson(facts, dtype);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? json::parse(*text) : json::object();
  }
  std::string Error(const ModelFacts& facts) {
    const auto text = ConfigJson(facts, DType::kF32);
    EXPECT_TRUE(absl::IsInvalidArgument(text.status())) << text.status();
    const std::string error(text.status().message());
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_LT(error.size(), 4000u);
    return error;
  }
  // As --init compares a folder with a model, on sequences that any window hides something of.
  ConfigComparison CompareWritten(const std::string& text, const ModelFacts& model) {
    ConfigComparison result = Compare(folder_.Write("config.json", text), model, 1 << 20);
    // Sequences are longer than what any of these models is for.
    std::erase_if(result.notes, [](const std::string& note) { return note.starts_with("has sequences"); });
    return result;
  }
  void ExpectComesBack(const ModelFacts& facts, const std::string& name) {
    const auto text = ConfigJson(facts, DType::kF32);
    ASSERT_TRUE(text.ok()) << name << ": " << text.status();
    const ConfigComparison result = CompareWritten(*text, facts);
    EXPECT_EQ(result.differences, Lines()) << name;
    EXPECT_EQ(result.notes, Lines()) << name;
    // The comparison passes over some of them.
    const ModelFacts read = FactsOfFile(json::parse(*text));
    EXPECT_EQ(read.model_type, facts.model_type) << name;
    EXPECT_EQ(read.max_positions, facts.max_positions) << name;
    EXPECT_EQ(read.layers_without_rope, facts.layers_without_rope) << name;
    EXPECT_EQ(read.sliding_window, facts.sliding_window) << name;
    EXPECT_EQ(read.sliding_layers, facts.sliding_layers) << name;
  }

  TempFolder folder_;
};

TEST_F(ConfigWriterTest, EveryFamilyThatIsReadIsWritten) {
  for (const ConfigFamily& family : ConfigFamilies()) {
    ModelFacts facts = Llama();
    facts.model_type = family.model_type;
    const auto text = ConfigJson(facts, DType::kF32);
    const bool named = text.status().message().find("cannot say") != std::string_view::npos;
    EXPECT_TRUE(text.ok() || named) << text.status();
  }
}

// Each key that decides something stands in ours as transformers has it, in the spelling of either version.
TEST_F(ConfigWriterTest, SaysWhatTransformersSays) {
  // Other words for the same: null for what follows from other keys, defaults of what is not used.
  const std::set<std::string> other_words = {"max_window_layers", "no_rope_layer_interval",
                                             "_sliding_window_pattern", "router_jitter_noise"};
  const std::set<std::string> of_other_heads = {"summary_first_dropout", "summary_proj_to_labels",
                                                "summary_type",          "summary_use_proj",
                                                "encoder_stride",        "pooler_act",
                                                "classifier_dropout",    "pooler_output_size"};
  int files = 0;
  for (const auto& [name, theirs] : FilesOfTransformers()) {
    ++files;
    const ModelFacts facts = FactsOfFile(theirs);
    ExpectComesBack(facts, name);
    const json ours = Written(facts);
    EXPECT_EQ(ours["architectures"], theirs["architectures"]) << name;
    for (const auto& [key, value] : theirs.items()) {
      if (value.is_null() || (value == false && !ours.contains(key))) continue;
      if (other_words.contains(key) || of_other_heads.contains(key)) continue;
      if (IsInertKey(key) && !key.ends_with("dropout") && !key.ends_with("pdrop")) continue;
      ASSERT_TRUE(ours.contains(key)) << name << " " << key;
      if (key == "activation_function" || key == "hidden_act") {
        EXPECT_EQ(Written(facts)[key].get<std::string>().substr(0, 4), value.get<std::string>().substr(0, 4));
      } else {
        EXPECT_EQ(ours[key], value) << name << " " << key;
      }
    }
  }
  EXPECT_GE(files, 2 * 29);
}

// Where no layer says whether it slides, every so many-th sees all.
TEST_F(ConfigWriterTest, SlidingPatternOfEitherVersion) {
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    json config = json::parse(TempFolder::Read(PathOf("v5", "gemma3")));
    ASSERT_EQ(config.erase("layer_types") + config.erase("_sliding_window_pattern"), 2u);
    config[key] = 3;  // of 3 layers
    EXPECT_EQ(FactsOfFile(config).sliding_layers, (std::vector<int64_t>{0, 1})) << key;
    config[key] = 2;
    EXPECT_EQ(FactsOfFile(config).sliding_layers, (std::vector<int64_t>{0, 2})) << key;
  }
}

TEST_F(ConfigWriterTest, BothSpellings) {
  json config = Written(With(Llama(), [](ModelFacts& f) { f.rope_theta = 5e5; }), DType::kBF16);
  EXPECT_EQ(config["rope_theta"], 5e5);
  EXPECT_TRUE(config.contains("rope_scaling") && config["rope_scaling"].is_null());
  EXPECT_EQ(config["rope_parameters"], (json{{"rope_type", "default"}, {"rope_theta", 5e5}}));
  EXPECT_EQ(config["dtype"], "bfloat16");
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_EQ(Written(Llama(), DType::kF16)["torch_dtype"], "float16");
  EXPECT_EQ(Written(Llama(), DType::kF32)["dtype"], "float32");
  config = Written(With(Llama(), [](ModelFacts& f) {
    f.rope_type = "linear";
    f.rope_factor = 4;
  }));
  EXPECT_EQ(config["rope_scaling"], (json{{"rope_type", "linear"}, {"factor", 4.0}}));
  EXPECT_EQ(config["rope_parameters"], (json{{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 1e4}}));
}

// Of what the facts do not say, nothing: the defaults of classes are of other vocabularies.
TEST_F(ConfigWriterTest, TokensAndArchitectures) {
  for (const ModelFacts& facts : {Llama(), Gpt2(), Qwen2()}) {
    const json config = Written(facts);
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
      EXPECT_TRUE(config.contains(key) && config[key].is_null()) << key;
    }
    EXPECT_FALSE(config.contains("transformers_version"));
  }
  const ModelFacts ours = With(Llama(), [](ModelFacts& f) {
    f.model_type = "free_transformer";
    f.latent_bits = 8;
  });
  const json config = Written(ours);
  EXPECT_EQ(config["model_type"], "free_transformer");
  EXPECT_EQ(config["latent_bits"], 8);
  EXPECT_FALSE(config.contains("architectures"));
  ExpectComesBack(ours, "free_transformer");
  EXPECT_EQ(CompareWritten(config.dump(), Llama()).differences,
            Lines{"latent_bits is 8, the model's latent_bits is 0"});
}

// A factor that is the ratio of contexts stays a factor.
TEST_F(ConfigWriterTest, DynamicRope) {
  for (const int64_t original : {16, 32}) {
    const ModelFacts facts = With(Llama(), [&](ModelFacts& f) {
      f.rope_type = "dynamic";
      f.rope_factor = 2;
      f.max_positions = 32;
      f.rope_original_positions = original;
    });
    EXPECT_EQ(Written(facts)["rope_parameters"], (json{{"rope_type", "dynamic"},
                                                       {"factor", 2.0},
                                                       {"original_max_position_embeddings", original},
                                                       {"rope_theta", facts.rope_theta}}));
    ExpectComesBack(facts, "dynamic");
  }
}

TEST_F(ConfigWriterTest, RealNumbersKeepTheirBits) {
  const ModelFacts facts = With(Llama(), [](ModelFacts& f) {
    f.rope_theta = 12345.678901234567;
    f.norm_eps = 1.0 / 3;
    f.attention_dropout = 0.1 + 0.2;
  });
  const ModelFacts read = FactsOfFile(Written(facts));
  EXPECT_EQ(read, facts);
}

struct Edit {
  std::string fact;
  std::function<void(ModelFacts&)> change;
};

// A change to each fact, such that the facts stay those of a model.
std::vector<Edit> Edits() {
  std::vector<Edit> edits;
  for (const FactField& field : FactFields()) {
    if (field.name == "model_type") continue;
    edits.push_back({std::string(field.name), [&field](ModelFacts& facts) {
                       FactValue value = GetFact(facts, field);
                       if (auto* flag = std::get_if<bool>(&value)) *flag = !*flag;
                       if (auto* number = std::get_if<int64_t>(&value))
                         *number = *number == 0 ? 5 : *number * 2;
                       if (auto* real = std::get_if<double>(&value)) *real += 0.25;
                       if (auto* list = std::get_if<std::vector<int64_t>>(&value))
                         *list = list->empty() ? std::vector<int64_t>{1} : std::vector<int64_t>{};
                       if (auto* list = std::get_if<std::vector<double>>(&value)) list->push_back(1.5);
                       if (auto* text = std::get_if<std::string>(&value)) {
                         if (field.name == "positions") *text = *text == "rope" ? "learned" : "rope";
                         if (field.name == "norm") *text = *text == "rms_norm" ? "layer_norm" : "rms_norm";
                         if (field.name == "norm_placement") *text = *text == "pre" ? "both" : "pre";
                         if (field.name == "qk_norm") *text = *text == "none" ? "head" : "none";
                         if (field.name == "activation") *text = "relu";
                         if (field.name == "rope_type") *text = *text == "default" ? "linear" : "default";
                       }
                       SetFact(facts, field, value);
                       if (field.name == "sliding_layers") facts.sliding_window = 3;
                     }});
  }
  edits.push_back({"two biases", [](ModelFacts& f) {
                     f.qkv_bias = !f.qkv_bias;
                     f.attention_output_bias = !f.attention_output_bias;
                   }});
  edits.push_back({"heads", [](ModelFacts& f) { f.num_heads *= 2, f.num_kv_heads *= 2, f.head_size /= 2; }});
  edits.push_back({"layers", [](ModelFacts& f) {
                     f.num_layers = 3;
                     f.sliding_layers = {};
                     f.sliding_window = 0;
                   }});
  edits.push_back({"window", [](ModelFacts& f) {
                     f.sliding_window = 7;
                     f.sliding_layers = {};
                   }});
  return edits;
}

// What was changed is in the file, or there is no file and an error that says so. Which of the two is listed:
// a key that is left out would otherwise pass for one that the family does not have.
TEST_F(ConfigWriterTest, EditedFactsComeBackOrAreRefused) {
  const std::set<std::string> decoder = {"padding_token",
                                         "vocab_size",
                                         "hidden_size",
                                         "num_layers",
                                         "num_heads",
                                         "num_kv_heads",
                                         "head_size",
                                         "intermediate_size",
                                         "max_positions",
                                         "rope_theta",
                                         "norm_eps",
                                         "activation",
                                         "tied_head",
                                         "embedding_dropout",
                                         "residual_dropout",
                                         "attention_dropout",
                                         "heads",
                                         "layers",
                                         "rope_type"};
  const auto plus = [&](std::set<std::string> more) {
    more.insert(decoder.begin(), decoder.end());
    return more;
  };
  // Whose numbers are left over when the type becomes another.
  const auto scaled = [&](std::set<std::string> more) {
    more = plus(std::move(more));
    more.erase("rope_type");
    return more;
  };
  struct Family {
    std::string file;
    std::set<std::string> sayable;
  };
  const Family families[] = {
      {"gpt2",
       {"vocab_size", "intermediate_size", "max_positions", "norm_eps", "activation", "tied_head",
        "num_layers", "attention_scale_by_layer", "embedding_dropout", "residual_dropout",
        "attention_dropout", "heads", "layers"}},
      {"llama", plus({"mlp_bias", "two biases"})},
      {"llama_linear", scaled({"mlp_bias", "two biases", "rope_factor"})},
      {"llama_yarn", scaled({"mlp_bias", "two biases", "rope_factor", "rope_original_positions",
                             "rope_beta_fast", "rope_beta_slow", "rope_attention_factor"})},
      {"llama3_scaled", scaled({"mlp_bias", "two biases", "rope_factor", "rope_original_positions",
                                "rope_low_freq_factor", "rope_high_freq_factor"})},
      {"mistral_no_window", plus({"sliding_window", "window"})},
      {"qwen2", plus({"sliding_window", "sliding_layers", "window"})},
      {"olmo2", plus({"two biases"})},
      {"phi3", plus({"sliding_window", "window", "rope_fraction"})},
      {"phi3_longrope",
       scaled({"sliding_window", "window", "rope_factor", "rope_original_positions", "rope_attention_factor",
               "rope_short_factors", "rope_long_factors", "rope_fraction"})},
      {"gpt_neox",
       {"vocab_size", "intermediate_size", "max_positions", "rope_theta", "norm_eps", "activation",
        "tied_head", "num_layers", "parallel_residual", "two biases", "rope_fraction", "attention_dropout",
        "heads", "layers", "rope_type"}},
      {"qwen3", plus({"sliding_window", "sliding_layers", "window", "two biases"})},
      {"granite", plus({"mlp_bias", "two biases", "embedding_multiplier", "residual_multiplier",
                        "logit_multiplier", "attention_scale"})},
      {"smollm3", plus({"mlp_bias", "two biases", "layers_without_rope", "sliding_window", "sliding_layers",
                        "window"})}};
  for (const Family& family : families) {
    const ModelFacts base = FactsOfFile(json::parse(TempFolder::Read(PathOf("v5", family.file))));
    const std::string before = Written(base).dump();
    for (const Edit& edit : Edits()) {
      const std::string name = family.file + " " + edit.fact;
      const ModelFacts edited = With(base, edit.change);
      if (!CheckFacts(edited).empty()) {
        EXPECT_NE(Error(edited), "") << name;
        continue;
      }
      if (!family.sayable.contains(edit.fact)) {
        // What follows from a fact that cannot be said may be named with it or instead.
        EXPECT_NE(Error(edited).find("cannot say that "), std::string::npos) << name;
        continue;
      }
      ExpectComesBack(edited, name);
      EXPECT_NE(Written(edited).dump(), before) << name;
    }
  }
}

TEST_F(ConfigWriterTest, WhatCannotBeSaidIsNamed) {
  EXPECT_EQ(Error(With(Llama(), [](ModelFacts& f) { f.sliding_window = 16; })),
            "the config.json of a llama cannot say that sliding_window is 16");
  EXPECT_EQ(Error(With(Llama(), [](ModelFacts& f) { f.qkv_bias = f.attention_scale_by_layer = true; })),
            "the config.json of a llama cannot say that attention_output_bias is false, "
            "attention_scale_by_layer is "
            "true");
  EXPECT_EQ(Error(With(Llama(), [](ModelFacts& f) { f.rope_fraction = 0.5; })),
            "the config.json of a llama cannot say that rope_fraction is 0.5");
  EXPECT_EQ(Error(With(Llama(), [](ModelFacts& f) { f.rope_type = "mrope"; })),
            "the config.json of a llama cannot say that rope_type is \"mrope\"");
  EXPECT_EQ(Error(With(Gpt2(), [](ModelFacts& f) { f.num_kv_heads = 2; })),
            "the config.json of a gpt2 cannot say that num_kv_heads is 2");
  EXPECT_EQ(Error(With(Llama(), [](ModelFacts& f) { f.model_type = "nobody"; })),
            "the keys of the model_type 'nobody' are not known");
}

TEST_F(ConfigWriterTest, HostileFacts) {
  const auto error = [&](const std::function<void(ModelFacts&)>& change, const std::string& base = "llama") {
    return Error(With(FactsOfFile(json::parse(TempFolder::Read(PathOf("v5", base)))), change));
  };
  EXPECT_NE(Error(ModelFacts()).find("missing"), std::string::npos);
  EXPECT_NE(error([](ModelFacts& f) { f.num_heads = 0; }), "");
  EXPECT_NE(error([](ModelFacts& f) { f.rope_theta = std::numeric_limits<double>::infinity(); }), "");
  EXPECT_NE(error([](ModelFacts& f) { f.model_type = std::string(1 << 20, '\n'); }), "");
  EXPECT_NE(error([](ModelFacts& f) { f.activation = "\xff\"\n"; }).find("activation"), std::string::npos);
  EXPECT_NE(error([](ModelFacts& f) { f.logit_multiplier = 0; }, "granite").find("logit_multiplier"),
            std::string::npos);
  for (const double scale : {-1.0, 1e-200, 1e200, 0.3})
    EXPECT_NE(error([&](ModelFacts& f) { f.attention_scale = scale; }, "gemma2").find("attention_scale"),
              std::string::npos);
  // No list of that many layers is made.
  for (const char* base : {"qwen2_window", "gemma2", "smollm3"})
    EXPECT_NE(error([](ModelFacts& f) { f.num_layers = int64_t{1} << 31; }, base).find("at most"),
              std::string::npos);
}

}  // namespace
}  // namespace ft
