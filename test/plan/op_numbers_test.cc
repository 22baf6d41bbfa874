// Ops of a training step are numbered before stage remat; what the numbers say of the plan's instructions is
// held to what ops and instructions say themselves: their phases, layers, and that nothing is forgotten.
#include "compiler/pipeline/op_numbers.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/pipeline/compile.h"
#include "dialects/ft/dialect.h"
#include "gtest/gtest.h"
#include "mlir/IR/MLIRContext.h"
#include "models/registry.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

constexpr const char* kStep = "train_step";

struct Case {
  const char* name;
  const char* model;
  std::function<void(compiler::CompileOptions&)> set;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

// Of an op, before stage remat.
struct Numbered {
  std::string name, layer, phase;
  std::string kernel;  // empty where it has none by itself
};

std::string Text(mlir::StringAttr attribute) { return attribute ? attribute.str() : ""; }

class OpNumbersTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    TempFolder folder;
    std::string text;
    {
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      auto module = models::buildModel(context, GetParam().model, "debug", {});
      ASSERT_TRUE(static_cast<bool>(module));
      llvm::raw_string_ostream stream(text);
      models::printModel(**module, stream);
    }
    compiler::CompileOptions options;
    options.strategy = "no_shard";
    GetParam().set(options);
    const auto observe = [this](const compiler::Stage& stage, int, mlir::ModuleOp module) {
      if (stage.name == "optimizer") Number(module.lookupSymbol<mlir::func::FuncOp>(kStep));
      if (stage.name == "memory")
        numbers_ = compiler::numbersOfInstructions(module.lookupSymbol<mlir::ftx::ProgramOp>(kStep));
      return absl::OkStatus();
    };
    auto plan = compiler::compileModel(folder.Write("model.mlir", text), options, observe);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const proto::Program& program : plan->programs())
      if (program.name() == kStep) step_ = program;
    ASSERT_EQ(numbers_.size(), static_cast<size_t>(step_.instructions_size()));
  }

  void Number(mlir::func::FuncOp train) {
    for (mlir::Operation& op : train.getBody().front()) {
      auto kernel = mlir::dyn_cast<mlir::ft::KernelOpInterface>(op);
      ops_.push_back({.name = op.getName().getStringRef().str(),
                      .layer = Text(mlir::ft::getLayer(&op)),
                      .phase = Text(mlir::ft::getPhase(&op)),
                      .kernel = kernel ? kernel.getKernelName().str() : ""});
    }
    compiler::numberOps(train);
  }

  const proto::Instruction& instruction(size_t i) const { return step_.instructions(static_cast<int>(i)); }

  std::vector<Numbered> ops_;
  std::vector<std::vector<unsigned>> numbers_;
  proto::Program step_;
};

TEST_P(OpNumbersTest, AKernelHasNumbersOfItsPhase) {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    for (const unsigned number : numbers_[i]) {
      ASSERT_LT(number, ops_.size());
      const std::string& phase = instruction(i).phase();
      EXPECT_EQ(ops_[number].phase, phase == "recompute" ? "forward" : phase)
          << ops_[number].name << " in " << instruction(i).ShortDebugString();
    }
  }
}

TEST_P(OpNumbersTest, AKernelHasANumberOfItsLayer) {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (numbers_[i].empty()) continue;
    std::set<std::string> layers;
    for (const unsigned number : numbers_[i]) layers.insert(ops_[number].layer);
    EXPECT_TRUE(layers.contains(instruction(i).layer())) << instruction(i).ShortDebugString();
  }
}

TEST_P(OpNumbersTest, AKernelOfOneOpIsThatOps) {
  std::set<unsigned> alone;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (numbers_[i].size() != 1 || instruction(i).cluster_plus_one() != 0) continue;
    const unsigned number = numbers_[i].front();
    if (ops_[number].name == "ft.call") continue;  // its body may have kernels of its own
    EXPECT_EQ(instruction(i).kernel(), ops_[number].kernel) << ops_[number].name;
    const bool is_again = instruction(i).phase() == "recompute";
    EXPECT_TRUE(is_again || alone.insert(number).second) << ops_[number].name << " runs twice";
  }
  EXPECT_GE(alone.size(), 10u);
}

TEST_P(OpNumbersTest, NoOpIsForgotten) {
  std::set<unsigned> seen;
  for (const std::vector<unsigned>& numbers : numbers_) seen.insert(numbers.begin(), numbers.end());
  for (unsigned number = 0; number < ops_.size(); ++number) {
    const Numbered& op = ops_[number];
    // What is done to all gradients has no layer; who reads a repeated or constant value makes it, and a
    // reshape mostly runs nothing.
    if (op.kernel.empty() || op.layer.empty() || op.name == "ft.broadcast" || op.name == "ft.fill" ||
        op.name == "ft.reshape")
      continue;
    EXPECT_TRUE(seen.contains(number)) << number << ", " << op.name << " of " << op.phase;
  }
}

TEST_P(OpNumbersTest, WhatIsComputedAgainHasItsNumberTwice) {
  std::set<unsigned> forward, again;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const std::string& phase = instruction(i).phase();
    if (phase == "forward") forward.insert(numbers_[i].begin(), numbers_[i].end());
    if (phase == "recompute") again.insert(numbers_[i].begin(), numbers_[i].end());
  }
  for (const unsigned number : again) EXPECT_TRUE(forward.contains(number)) << ops_[number].name;
}

INSTANTIATE_TEST_SUITE_P(Models, OpNumbersTest,
                         testing::Values(Case{"gpt2", "gpt2", [](auto&) {}},
                                         Case{"gpt2_full", "gpt2",
                                              [](auto& o) {
                                                o.remat = "full";
                                                o.strategy = "full_shard";
                                              }},
                                         Case{"llama_bf16", "llama",
                                              [](auto& o) {
                                                o.strategy = "full_shard";
                                                o.paramDtype = o.reduceDtype = "bf16";
                                                o.prefetch = "post";
                                              }},
                                         Case{"mixtral", "mixtral", [](auto& o) { o.strategy = "zero1"; }},
                                         Case{"gemma3", "gemma3",
                                              [](auto& o) {
                                                o.strategy = "hybrid_shard";
                                                o.offloadActivations = true;
                                              }},
                                         Case{"bert", "bert", [](auto& o) { o.remat = "ops:norms"; }},
                                         Case{"free_transformer", "free_transformer",
                                              [](auto& o) { o.strategy = "full_shard"; }},
                                         Case{"vit", "vit", [](auto& o) { o.clusterOps = 2; }}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ft
