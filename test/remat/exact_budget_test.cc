// --remat=budget against the exact optimum, on models small enough to try every set of ops: every candidate
// set is costed, and those that would be better by more than 2% of the step are compiled by the real
// pipeline.
#include <gtest/gtest.h>

#include "compiler/emit/emit_plan.h"
#include "compiler/pipeline/check_model.h"
#include "compiler/pipeline/solve_budget.h"
#include "compiler/pipeline/stages.h"
#include "dialects/ft/dialect.h"
#include "dialects/ftx/dialect.h"
#include "models/registry.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/kernels.h"
#include "runtime/cost/transfers.h"
#include "runtime/plan/bind.h"
#include "runtime/targets/shipped_targets.h"
#include "test/remat/exact_search.h"

namespace ft::test {
namespace {

using compiler::BudgetProblem;
using compiler::BudgetSolution;
using mlir::ModuleOp;
using mlir::Operation;

struct Case {
  const char* model;
  int layers;
  const char* strategy;
  int world;
  int exact_from;  // the smallest budget with the optimum, in eighths between the least and the most
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model << " " << c.layers << " " << c.strategy; }

class ExactBudget : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    mlir::DialectRegistry registry;
    registry.insert<mlir::func::FuncDialect, mlir::ft::FtDialect, mlir::ftx::FtxDialect>();
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
    context_.disableMultithreading();
    models::Overrides overrides;
    overrides["layers"] = GetParam().layers;
    auto built = models::buildModel(context_, GetParam().model, "debug", overrides);
    ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
    module_ = std::move(*built);
    options_.strategy = GetParam().strategy;
    options_.remat = "budget:1";  // choices are marked from outside
    ASSERT_TRUE(mlir::succeeded(compiler::checkModel(*module_, GetParam().model)));
    ASSERT_TRUE(RunStages(*module_, 0, RematStage()).ok());
    problem_.worldSize = GetParam().world;
    problem_.target = FindTarget("cpu");
  }

  static size_t RematStage() {
    for (size_t i = 0; i < compiler::stages().size(); ++i) {
      if (compiler::stages()[i].name == "remat") return i;
    }
    return 0;
  }

  absl::Status RunStages(ModuleOp module, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const compiler::Stage& stage = compiler::stages()[i];
      if (!stage.addPasses) continue;
      mlir::PassManager passes(&context_);
      stage.addPasses(passes, options_);
      if (mlir::failed(passes.run(module))) return absl::InternalError(stage.name.str() + " failed");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<proto::Plan> CompileRest(ModuleOp module) {
    FT_RETURN_IF_ERROR(RunStages(module, RematStage(), compiler::stages().size()));
    proto::Plan plan;
    if (mlir::failed(compiler::emitPlan(module, {}, plan))) return absl::InternalError("emit failed");
    return plan;
  }

  absl::StatusOr<BoundPlan> Bind(const proto::Plan& plan) {
    FT_ASSIGN_OR_RETURN(const Mesh mesh, MeshFor(plan, GetParam().world));
    return BindPlan(plan, mesh, DeviceClass::kCpu);
  }

  mlir::func::FuncOp Step(ModuleOp module) { return module.lookupSymbol<mlir::func::FuncOp>("train_step"); }

  absl::StatusOr<proto::Plan> CompileRecomputing(const std::vector<Operation*>& recomputed) {
    for (Operation* op : recomputed) op->setAttr("remat", mlir::StringAttr::get(&context_, "recompute"));
    mlir::OwningOpRef<ModuleOp> copy(module_->clone());
    for (Operation* op : recomputed) op->removeAttr("remat");
    return CompileRest(*copy);
  }

  double Seconds(Operation* op) const {
    auto cost = mlir::cast<mlir::ft::CostOpInterface>(op);
    return KernelSeconds(*problem_.target, cost.getFlops(), cost.getBytes(), proto::F32);
  }

  // Of all kernels of a step that keeps everything.
  double StepSeconds(const proto::Plan& plan) const {
    double seconds = 0;
    for (const proto::Program& program : plan.programs()) {
      if (program.name() != "train_step") continue;
      for (const proto::Instruction& i : program.instructions()) {
        if (i.opcode() == proto::KERNEL)
          seconds += KernelSeconds(*problem_.target, i.flops(), i.bytes(), proto::F32);
      }
    }
    return seconds;
  }

  // "layer_norm, gelu", of layers 0 and 1 "0.gelu, 1.gelu"
  static std::string Names(const std::vector<Operation*>& ops) {
    std::string text;
    for (Operation* op : ops) {
      const auto layer = mlir::ft::getLayer(op).getValue();
      text += (text.empty() ? "" : ", ") + layer.substr(layer.rfind('.') + 1).str() + "." +
              op->getName().stripDialect().str();
    }
    return text;
  }

  std::string Recomputed(ModuleOp module) {
    std::vector<Operation*> ops;
    for (Operation& op : Step(module).getBody().front()) {
      const auto choice = op.getAttrOfType<mlir::StringAttr>("remat");
      if (choice && choice == "recompute") ops.push_back(&op);
    }
    return Names(ops);
  }

  absl::StatusOr<BudgetSolution> Solve(uint64_t budget) {
    problem_.bytes = budget;
    mlir::OwningOpRef<ModuleOp> copy(module_->clone());
    absl::StatusOr<BudgetSolution> result =
        compiler::solveBudget(*copy, problem_, [&](ModuleOp module) { return CompileRest(module); });
    chosen_ = Recomputed(*copy);
    return result;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<ModuleOp> module_;
  compiler::CompileOptions options_;
  BudgetProblem problem_;
  std::string chosen_;  // by the last Solve
};

TEST_P(ExactBudget, IsWithinTwoPercent) {
  const auto kept = CompileRecomputing({});
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto bound = Bind(*kept);
  ASSERT_TRUE(bound.ok()) << bound.status();
  ExactSearch exact(
      Step(*module_), [&](Operation* op) { return Seconds(op); },
      [&](const std::vector<Operation*>& recomputed) -> absl::StatusOr<uint64_t> {
        FT_ASSIGN_OR_RETURN(const proto::Plan plan, CompileRecomputing(recomputed));
        FT_ASSIGN_OR_RETURN(const BoundPlan measured, Bind(plan));
        return measured.arena_bytes();
      });
  ASSERT_GE(exact.candidates(), 9u);
  const double step = StepSeconds(*kept);
  const uint64_t most = bound->arena_bytes();
  uint64_t least = 0;
  {
    const auto solution = Solve(1);
    ASSERT_FALSE(solution.ok());
    const std::string text(solution.status().message()), marker = "the smallest feasible budget is ";
    ASSERT_NE(text.find(marker), std::string::npos) << text;
    least = std::stoull(text.substr(text.find(marker) + marker.size()));
  }
  EXPECT_TRUE(Solve(least).ok()) << "what is called feasible is";
  double before = 0;
  for (int part = 8; part >= 0; --part) {
    const uint64_t budget = least + (most - least) / 8 * part;
    const auto solution = Solve(budget);
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_LE(solution->arenaBytes, budget);
    const double extra = solution->extraSeconds;
    const double below = part >= GetParam().exact_from ? (step + extra) / 1.02 - step : 0;
    const auto better = exact.Find(budget, bound->device.persistent_bytes, below);
    ASSERT_TRUE(better.ok()) << better.status();
    std::printf("budget %lu: arena %lu, extra %.3e s of a step of %.3e s: %s\n", budget, solution->arenaBytes,
                extra, step, chosen_.c_str());
    if (better->has_value())
      ADD_FAILURE() << (*better)->seconds << " s more would do, with an arena of " << (*better)->arena_bytes
                    << ": " << Names((*better)->recomputed);
    EXPECT_GE(extra, before) << "a smaller budget must not cost less";
    before = extra;
  }
  std::printf("%zu candidates, %zu sets, %d compiled\n", exact.candidates(), exact.sets(),
              exact.compilations());
}

INSTANTIATE_TEST_SUITE_P(Models, ExactBudget,
                         ::testing::Values(Case{"gpt2", 1, "no_shard", 1, 0},
                                           Case{"gpt2", 2, "no_shard", 1, 5},
                                           Case{"llama", 1, "no_shard", 1, 3}));

}  // namespace
}  // namespace ft::test
