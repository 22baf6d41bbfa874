// The config.json of every model of ours: it is of that model, and of no other.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "dialects/ft/facts.h"
#include "models/registry.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/compare_config.h"
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
  EXPECT_EQ(types, (std::set<std::string>{"bert", "free_transformer", "gemma2", "gemma3_text", "gpt2",
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

}  // namespace
}  // namespace ft
