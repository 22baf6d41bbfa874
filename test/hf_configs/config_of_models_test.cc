// The config.json of every model of ours: it is of that model, and of no other.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "dialects/ft/dialect.h"
#include "dialects/ft/facts.h"
#include "mlir/IR/Verifier.h"
#include "models/import.h"
#include "models/registry.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/compare_config.h"
#include "runtime/checkpoint/config_file.h"
#include "runtime/checkpoint/config_writer.h"
#include "runtime/checkpoint/testing/known_configs.h"

namespace ft {
namespace {

ModelFacts FactsOfModel(const std::string& family, const std::string& preset,
                        const models::Overrides& overrides) {
  mlir::MLIRContext context;
  auto module = models::buildModel(context, family, preset, overrides);
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return {};
  }
  const auto facts = mlir::ft::factsOf(**module);
  EXPECT_TRUE(mlir::succeeded(facts) && facts->has_value()) << family << " " << preset;
  return mlir::succeeded(facts) ? facts->value_or(ModelFacts()) : ModelFacts();
}

TEST(ConfigOfModelsTest, EveryPreset) {
  TempFolder folder;
  std::set<std::string> types;
  for (const models::ModelSpec& spec : models::allModels()) {
    for (const models::Preset& preset : spec.presets) {
      for (const double dropout : {0.0, 0.1}) {
        models::Overrides overrides;
        overrides["dropout"] = dropout;
        const ModelFacts facts = FactsOfModel(spec.name, preset.name, overrides);
        types.insert(facts.model_type);
        const auto text = ConfigJson(facts, DType::kBF16);
        ASSERT_TRUE(text.ok()) << preset.fullName << ": " << text.status();
        const std::string path = folder.Write("config.json", *text);
        auto compared = CompareConfig(path, facts, facts.max_positions);
        ASSERT_TRUE(compared.ok()) << compared.status();
        EXPECT_TRUE(compared->differences.empty()) << preset.fullName << ": " << compared->differences[0];
        EXPECT_TRUE(compared->notes.empty()) << preset.fullName << ": " << compared->notes[0];

        ModelFacts other = facts;
        other.norm_eps *= 2;
        compared = CompareConfig(path, other, facts.max_positions);
        ASSERT_TRUE(compared.ok()) << compared.status();
        EXPECT_EQ(compared->differences.size(), 1u) << preset.fullName;
      }
    }
  }
  EXPECT_EQ(types,
            (std::set<std::string>{"bert", "free_transformer", "gemma2", "gemma3_text", "gpt2", "gpt_neox",
                                   "llama", "mixtral", "qwen2", "qwen3", "qwen3_moe", "vit"}));
}

// The files that both major versions of transformers write of the same models.
TEST(ConfigOfModelsTest, TransformersSayTheSame) {
  for (const char* family : {"gemma3", "mixtral", "qwen3_moe", "vit", "bert", "bert_classifier"}) {
    const ModelFacts facts = FactsOfModel(family, "debug", {});
    for (const char* version : known_configs::kVersions) {
      const ConfigComparison compared =
          known_configs::Compare(known_configs::PathOf(version, family), facts, facts.max_positions);
      EXPECT_EQ(compared.differences, known_configs::Lines()) << version << " " << family;
      EXPECT_EQ(compared.notes, known_configs::Lines()) << version << " " << family;
    }
  }
}

std::vector<std::string> AllFiles() {
  std::vector<std::string> paths;
  for (const char* version : known_configs::kVersions) {
    for (const auto& entry :
         std::filesystem::directory_iterator(fmt::format("{}/{}", FT_HF_CONFIGS, version)))
      paths.push_back(entry.path().string());
  }
  return paths;
}

// Every file of transformers here is built, as a model of exactly its facts.
TEST(ImportedModelsTest, EveryFile) {
  for (const std::string& path : AllFiles()) {
    const auto facts = ReadConfigFile(path);
    ASSERT_TRUE(facts.ok()) << facts.status();
    mlir::MLIRContext context;
    models::Overrides overrides;
    if (facts->vocab_size > 0) overrides["seq"] = int64_t{32};
    auto module = models::importModel(context, *facts, "tiny", overrides);
    ASSERT_TRUE(bool(module)) << path << ": " << llvm::toString(module.takeError());
    EXPECT_TRUE(mlir::succeeded(mlir::verify(**module))) << path;
    EXPECT_EQ(*mlir::ft::factsOf(**module), std::optional(*facts)) << path;
  }
}

class ImportErrorTest : public testing::Test {
 protected:
  std::string Error(const std::string& name, const std::function<void(ModelFacts&)>& change,
                    const models::Overrides& overrides = {}) {
    ModelFacts facts = *ReadConfigFile(known_configs::PathOf("v5", name));
    change(facts);
    mlir::MLIRContext context;
    auto module = models::importModel(context, facts, "tiny", overrides);
    return module ? "no error" : llvm::toString(module.takeError());
  }
};

// What a builder does not read is not passed over.
TEST_F(ImportErrorTest, FactsThatAreNotBuilt) {
  EXPECT_EQ(Error("llama", [](ModelFacts& f) { f.parallel_residual = true; }),
            "parallel_residual is true, but the llamas that are built have false");
  EXPECT_EQ(Error("gpt2", [](ModelFacts& f) { f.sliding_window = 4; }),
            "sliding_window is 4, but the gpt2s that are built have 0");
  EXPECT_EQ(
      Error("llama", [](ModelFacts& f) { f.activation = "swish2"; }),
      "the activation \"swish2\" is not known; known are silu, gelu, gelu_tanh, relu, relu2, tanh, sigmoid, "
      "quick_gelu");
  EXPECT_EQ(Error("llama", [](ModelFacts& f) { f.rope_type = "mrope"; }),
            "rope_type is \"mrope\", which is not known; known are default, linear, dynamic, llama3, yarn, "
            "longrope");
  EXPECT_EQ(Error("llama", [](ModelFacts& f) { f.rope_fraction = 0.5; }),
            "only 0.50 of each head is rotated, which a llama cannot say");
  EXPECT_EQ(Error("llama", [](ModelFacts& f) { f.num_labels = 2; }),
            "models of type llama with labels are not built");
  EXPECT_EQ(Error("phi3_longrope", [](ModelFacts& f) { f.rope_long_factors.pop_back(); }),
            "rope has 7 factors for 8 pairs of elements of a head");
}

TEST_F(ImportErrorTest, Shapes) {
  const auto nothing = [](ModelFacts&) {};
  EXPECT_EQ(Error("gpt2", nothing, {{"seq", int64_t{65}}}),
            "--seq=65 is longer than the model's 64 positions");
  EXPECT_EQ(Error("roberta", nothing, {{"seq", int64_t{65}}}),
            "--seq=65 is longer than the model's 64 positions");
  EXPECT_EQ(Error("roberta", nothing), "no error");
  EXPECT_EQ(Error("llama", nothing, {{"seq", int64_t{80}}}), "no error");
  EXPECT_EQ(Error("llama", nothing, {{"routing", "grouped"}}), "--routing is no option of a llama");
  EXPECT_EQ(Error("vit", nothing, {{"seq", int64_t{8}}}), "--seq is no option of a vit");
  EXPECT_EQ(Error("llama", nothing, {{"batch", int64_t{0}}}),
            "--batch=0 is out of range; expected 1 to 1048576");
}

// Rates of the file are kept, or all become another.
TEST(ImportedModelsTest, Dropout) {
  const auto rates = [](const models::Overrides& overrides) {
    const auto facts = ReadConfigFile(known_configs::PathOf("v5", "gpt2"));
    mlir::MLIRContext context;
    auto module = models::importModel(context, *facts, "tiny", overrides);
    std::set<double> found;
    (*module)->walk([&](mlir::ft::DropoutOp op) { found.insert(op.getRate().convertToDouble()); });
    (*module)->walk(
        [&](mlir::ft::AttentionOp op) { found.insert(op.getRate() ? op.getRate()->convertToDouble() : 0); });
    return found;
  };
  EXPECT_EQ(rates({}), std::set<double>{0.1});
  EXPECT_EQ(rates({{"dropout", 0.0}}), std::set<double>{0.0});
  EXPECT_EQ(rates({{"dropout", 0.25}}), std::set<double>{0.25});
}

}  // namespace
}  // namespace ft
