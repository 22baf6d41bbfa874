// What schedules are worth, by simulation: prefetching exposes no more communication than none, and
// scheduling by cost no more than prefetching; and a budget of memory is never exceeded.
#include <map>
#include <string>
#include <tuple>

#include "compiler/pipeline/compile.h"
#include "gtest/gtest.h"
#include "mlir/IR/MLIRContext.h"
#include "models/registry.h"
#include "runtime/base/temp_folder.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/simulate.h"
#include "runtime/plan/verify_plan.h"
#include "runtime/targets/shipped_targets.h"

namespace ft {
namespace {

// A model of the zoo as text.
std::string ModelText(const std::string& family, const std::string& preset) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = models::buildModel(context, family, preset, {});
  EXPECT_TRUE(static_cast<bool>(module));
  std::string text;
  llvm::raw_string_ostream stream(text);
  models::printModel(**module, stream);
  return text;
}

class Scheduled {
 public:
  Scheduled(const std::string& family, const std::string& preset)
      : path_(folder_.Write("model.mlir", ModelText(family, preset))) {}

  absl::StatusOr<proto::Plan> Compile(const compiler::CompileOptions& options) const {
    const auto ignore = [](const compiler::Phase&, int, mlir::ModuleOp) { return absl::OkStatus(); };
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

Bound Bind(absl::StatusOr<proto::Plan> plan, int world_size, DeviceClass device) {
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(VerifyPlan(*plan), absl::OkStatus());
  const Mesh mesh = *MeshFor(*plan, world_size);
  return {*plan, *BindPlan(*plan, mesh, device)};
}

//===----------------------------------------------------------------------===//
// Exposed communication
//===----------------------------------------------------------------------===//

using Machine = std::tuple<std::pair<const char*, const char*>, const char*, const char*, int>;

class ExposureTest : public testing::TestWithParam<Machine> {};

// Rounding of sums in another order.
constexpr double kRounding = 1e-12;

TEST_P(ExposureTest, AutoHidesNoLessThanPreAndPreNoLessThanNone) {
  const auto& [model, strategy, target, world_size] = GetParam();
  const Scheduled scheduled(model.first, model.second);
  std::map<std::string, double> exposed;
  for (const char* prefetch : {"none", "pre", "auto"}) {
    compiler::CompileOptions options;
    options.strategy = strategy;
    options.overlap.prefetch = prefetch;
    options.overlap.target = *FindTarget(target);
    options.worldSize = world_size;
    const Bound bound = Bind(scheduled.Compile(options), world_size, DeviceOf(*FindTarget(target)));
    exposed[prefetch] = SimulateStep(bound.plan, bound.bound, *FindTarget(target)).exposed_seconds;
  }
  EXPECT_LE(exposed["auto"], exposed["pre"] + kRounding);
  EXPECT_LT(exposed["pre"], exposed["none"]);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ExposureTest,
    testing::Combine(testing::Values(std::pair("gpt2", "124m"), std::pair("llama", "llama3-8b")),
                     testing::Values("full_shard", "shard_grad_op", "zero1", "no_shard", "hybrid_shard"),
                     testing::Values("h100", "cpu"), testing::Values(8, 64)));

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

constexpr int kRanks = 4;

struct BudgetCase {
  const char* target;
  const char* family;
  const char* preset;
  // What the smallest budget takes away exposes communication. Not so where products have scratch: beside the
  // peak, which is at one of them, there is room to prefetch.
  bool costs;
};

void PrintTo(const BudgetCase& test, std::ostream* out) { *out << test.target << " " << test.preset; }

class BudgetTest : public testing::TestWithParam<BudgetCase> {
 protected:
  absl::StatusOr<proto::Plan> Compile(const char* prefetch, uint64_t budget) {
    compiler::CompileOptions options;
    options.strategy = "full_shard";
    options.worldSize = kRanks;
    options.overlap.prefetch = prefetch;
    options.overlap.target = *FindTarget(GetParam().target);
    options.overlap.memoryBudget = budget;
    return scheduled_.Compile(options);
  }
  // Budgets count the scratch of the target's device.
  static DeviceClass Device() { return DeviceOf(*FindTarget(GetParam().target)); }
  uint64_t Arena(const char* prefetch, uint64_t budget = 0) {
    return Bind(Compile(prefetch, budget), kRanks, Device()).bound.arena_bytes();
  }
  double Exposed(uint64_t budget) {
    const Bound bound = Bind(Compile("auto", budget), kRanks, Device());
    return SimulateStep(bound.plan, bound.bound, *FindTarget(GetParam().target)).exposed_seconds;
  }

  const Scheduled scheduled_{GetParam().family, GetParam().preset};
};

TEST_P(BudgetTest, TheArenaStaysBelow) {
  const uint64_t least = Arena("none"), most = Arena("auto");
  ASSERT_GT(most, least) << "nothing to decide";
  for (int part = 0; part <= 8; ++part) {
    const uint64_t budget = least + (most - least) * part / 8;
    EXPECT_LE(Arena("auto", budget), budget);
  }
  EXPECT_LE(Exposed(most), Exposed(least));
  EXPECT_EQ(Exposed(most) < Exposed(least), GetParam().costs);
  EXPECT_EQ(Exposed(2 * most), Exposed(0));
}

TEST_P(BudgetTest, WhatCannotBeMetIsRefusedWithWhatCan) {
  const uint64_t least = Arena("none");
  const absl::Status status = Compile("auto", least - 256).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find(" has " + std::to_string(least) + " bytes"), std::string::npos)
      << status;
}

INSTANTIATE_TEST_SUITE_P(Targets, BudgetTest,
                         testing::Values(BudgetCase{"cpu", "llama", "debug", true},
                                         BudgetCase{"h100-ib", "gpt2", "124m", false}));

}  // namespace
}  // namespace ft
