// What schedules are worth, by simulation: with prefetching a step takes no longer than with none, and
// scheduled by cost no longer than with prefetching; and a budget of memory is never exceeded.
#include <map>
#include <string>
#include <tuple>

#include "compiler/pipeline/compile.h"
#include "compiler/shard/strategy.h"
#include "gtest/gtest.h"
#include "mlir/IR/MLIRContext.h"
#include "models/registry.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/beside_arena.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/verify_plan.h"
#include "runtime/targets/shipped_targets.h"

namespace ft {
namespace {

// A model of the zoo as text; with other than its own layers unless 0.
std::string ModelText(const std::string& family, const std::string& preset, int layers) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  models::Overrides overrides;
  if (layers != 0) overrides["layers"] = layers;
  auto module = models::buildModel(context, family, preset, overrides);
  EXPECT_TRUE(static_cast<bool>(module));
  std::string text;
  llvm::raw_string_ostream stream(text);
  models::printModel(**module, stream);
  return text;
}

class Scheduled {
 public:
  Scheduled(const std::string& family, const std::string& preset, int layers = 0)
      : path_(folder_.Write("model.mlir", ModelText(family, preset, layers))) {}

  absl::StatusOr<proto::Plan> Compile(const compiler::CompileOptions& options) const {
    const auto ignore = [](const compiler::Stage&, int, mlir::ModuleOp) { return absl::OkStatus(); };
    return compiler::compileModel(path_, options, ignore);
  }

 private:
  TempFolder folder_;
  std::string path_;
};

struct Bound {
  proto::Plan plan;
  BoundPlan bound;
};

Bound Bind(absl::StatusOr<proto::Plan> plan, DeviceClass device) {
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(VerifyPlan(*plan), absl::OkStatus());
  const Mesh mesh = *CompiledMesh(*plan, static_cast<int>(plan->target().ranks_per_node()));
  return {*plan, *BindPlan(*plan, mesh, device)};
}

//===----------------------------------------------------------------------===//
// Prefetching
//===----------------------------------------------------------------------===//

using Machine = std::tuple<std::pair<const char*, const char*>, const char*, const char*, int>;

class PrefetchTest : public testing::TestWithParam<Machine> {};

// Rounding of sums in another order.
constexpr double kRounding = 1e-12;

// Seconds of a step, by prefetching. What is hidden slows down what hides it, so the exposed part alone says
// less.
std::map<std::string, double> SecondsBy(const Scheduled& scheduled, const std::string& strategy,
                                        const std::string& target, int world_size) {
  std::map<std::string, double> seconds;
  for (const char* prefetch : {"none", "pre", "auto"}) {
    compiler::CompileOptions options;
    options.strategy = strategy;
    options.prefetch = prefetch;
    options.target = *FindTarget(target);
    options.worldSize = world_size;
    const Bound bound = Bind(scheduled.Compile(options), DeviceOf(*FindTarget(target)));
    seconds[prefetch] = SimulateStep(bound.plan, bound.bound, *FindTarget(target)).seconds;
  }
  return seconds;
}

TEST_P(PrefetchTest, AutoIsNoSlowerThanPreAndPreNoSlowerThanNone) {
  const auto& [model, strategy, target, world_size] = GetParam();
  const auto seconds = SecondsBy(Scheduled(model.first, model.second), strategy, target, world_size);
  EXPECT_LE(seconds.at("auto"), seconds.at("pre") + kRounding);
  EXPECT_LT(seconds.at("pre"), seconds.at("none"));
}

// Few layers, every target and strategy, small worlds and large ones.
TEST(PrefetchSweep, AutoIsNoSlowerThanPreAndPreNoSlowerThanNone) {
  const std::pair<const char*, const char*> models[] = {{"gpt2", "124m"}, {"llama", "llama3-8b"}};
  for (const auto& [family, preset] : models) {
    const Scheduled scheduled(family, preset, /*layers=*/3);
    for (const compiler::Strategy& strategy : compiler::strategies()) {
      for (const std::string& target : TargetNames()) {
        for (const int world_size : {2, 8, 512}) {
          SCOPED_TRACE(std::string(preset) + " " + strategy.name.str() + " " + target + " " +
                       std::to_string(world_size));
          const auto seconds = SecondsBy(scheduled, strategy.name.str(), target, world_size);
          EXPECT_LE(seconds.at("auto"), seconds.at("pre") + kRounding);
          EXPECT_LE(seconds.at("pre"), seconds.at("none") + kRounding);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, PrefetchTest,
    testing::Combine(testing::Values(std::pair("gpt2", "124m"), std::pair("llama", "llama3-8b")),
                     testing::Values("full_shard", "shard_grad_op", "zero1", "no_shard", "hybrid_shard"),
                     testing::Values("h100", "cpu"), testing::Values(8, 64)));

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

constexpr int kRanks = 4;

struct BudgetCase {
  const char* target;
  uint32_t ranks_per_node;
  const char* family;
  const char* preset;
};

void PrintTo(const BudgetCase& test, std::ostream* out) { *out << test.target << " " << test.preset; }

class BudgetTest : public testing::TestWithParam<BudgetCase> {
 protected:
  absl::StatusOr<proto::Plan> Compile(const char* prefetch, uint64_t budget) {
    compiler::CompileOptions options;
    options.strategy = "full_shard";
    options.worldSize = kRanks;
    options.prefetch = prefetch;
    options.target = Machine();
    options.memoryBudget = budget;
    return scheduled_.Compile(options);
  }
  static Target Machine() {
    Target target = *FindTarget(GetParam().target);
    target.set_ranks_per_node(GetParam().ranks_per_node);
    return target;
  }
  // Budgets count the scratch of the target's device.
  static DeviceClass Device() { return DeviceOf(Machine()); }
  // And what the target announces beside the arena.
  uint64_t Taken(const char* prefetch, uint64_t budget = 0) {
    const Bound bound = Bind(Compile(prefetch, budget), Device());
    beside_ = BesideArenaOf(Machine(), bound.plan, bound.bound.mesh, Device()).total();
    return bound.bound.arena_bytes() + beside_;
  }
  double Exposed(uint64_t budget) {
    const Bound bound = Bind(Compile("auto", budget), Device());
    return SimulateStep(bound.plan, bound.bound, Machine()).exposed_seconds;
  }

  const Scheduled scheduled_{GetParam().family, GetParam().preset};
  uint64_t beside_ = 0;  // of the plan that was taken last
};

TEST_P(BudgetTest, WhatARankTakesStaysBelow) {
  const uint64_t least = Taken("none"), most = Taken("auto");
  ASSERT_GT(most, least) << "nothing to decide";
  for (int part = 0; part <= 8; ++part) {
    const uint64_t budget = least + (most - least) * part / 8;
    EXPECT_LE(Taken("auto", budget), budget);
  }
  EXPECT_LT(Exposed(most), Exposed(least));
  EXPECT_EQ(Exposed(2 * most), Exposed(0));
}

TEST_P(BudgetTest, WhatCannotBeMetIsRefusedWithWhatCan) {
  const uint64_t least = Taken("none");
  const absl::Status status = Compile("auto", least - 256).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string bytes = std::to_string(least) + " bytes";
  const std::string said = beside_ == 0 ? " has " + bytes
                                        : " takes " + bytes + "; " + std::to_string(beside_) +
                                              " bytes of it lie beside the arena, as h100-ib announces";
  EXPECT_NE(std::string(status.message()).find(said), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(Targets, BudgetTest,
                         testing::Values(BudgetCase{"cpu", kRanks, "qwen3", "debug"},
                                         // Over the network: inside a node nothing is left to decide.
                                         BudgetCase{"h100-ib", 1, "gpt2", "124m"}));

}  // namespace
}  // namespace ft
