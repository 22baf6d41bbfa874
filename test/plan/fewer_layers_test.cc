// Models of which equal layers were taken out, for a search to measure: their plans are those of models that
// were built with fewer.
#include <string>

#include "compiler/pipeline/compile.h"
#include "gtest/gtest.h"
#include "mlir/IR/MLIRContext.h"
#include "models/registry.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/report.h"

namespace ft {
namespace {

using compiler::CompileOptions;

class FewerLayersTest : public testing::Test {
 protected:
  std::string Model(const char* family, int layers) {
    std::string text;
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    auto module = models::buildModel(context, family, "debug", {{"layers", int64_t{layers}}});
    EXPECT_TRUE(static_cast<bool>(module));
    llvm::raw_string_ostream stream(text);
    models::printModel(**module, stream);
    return folder_.Write(std::string(family) + std::to_string(layers) + ".mlir", text);
  }

  static CompileOptions Options() {
    CompileOptions options;
    options.strategy = "full_shard";
    options.paramDtype = options.reduceDtype = "bf16";
    options.remat = "ops:norms";
    return options;
  }

  static proto::Plan Compile(const std::string& path, const CompileOptions& options) {
    const auto ignore = [](const compiler::Stage&, int, mlir::ModuleOp) { return absl::OkStatus(); };
    auto plan = compiler::compileModel(path, options, ignore);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : proto::Plan();
  }

  // Bytes, traffic, FLOPs and time, which names of layers do not change.
  static void ExpectAlike(const proto::Plan& a, const proto::Plan& b) {
    const Mesh mesh{.replica = 1, .shard = 4};
    const auto one = BindPlan(a, mesh, DeviceClass::kCpu), other = BindPlan(b, mesh, DeviceClass::kCpu);
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_EQ(one->arena_bytes(), other->arena_bytes());
    const PlanReport first = ReportPlan(a, *one), second = ReportPlan(b, *other);
    EXPECT_EQ(first.parameters, second.parameters);
    EXPECT_EQ(first.traffic.total, second.traffic.total);
    EXPECT_EQ(first.flops.total(), second.flops.total());
    EXPECT_EQ(SimulateStep(a, *one, a.target()).seconds, SimulateStep(b, *other, b.target()).seconds);
  }

  TempFolder folder_;
};

struct Family {
  const char* name;
  int layers, period;
  int others = 0;  // layers unlike them
};

// One layer after the other, by turns of two and of three, and behind one that has no sums of layers before
// to add to.
TEST_F(FewerLayersTest, AreThoseOfModelsThatHaveFewer) {
  for (const Family& family : {Family{"gpt2", 7, 1},
                               {"llama", 7, 1},
                               {"qwen3", 7, 1},
                               {"gpt_neox", 7, 1},
                               {"mixtral", 6, 1, /*others=*/1},
                               {"gemma2", 12, 2},
                               {"gemma3", 24, 3},
                               {"vit", 6, 1},
                               {"bert", 6, 1}}) {
    SCOPED_TRACE(family.name);
    const std::string path = Model(family.name, family.layers);
    const auto outline = compiler::outlineModel(path, Options());
    ASSERT_TRUE(outline.ok()) << outline.status();
    EXPECT_EQ(outline->blocks * family.period + family.others, family.layers);
    for (int kept : {2, 3}) {
      CompileOptions options = Options();
      options.keptBlocks = kept;
      ExpectAlike(Compile(path, options),
                  Compile(Model(family.name, kept * family.period + family.others), Options()));
    }
  }
}

// What another layer reads stays: the middle of a Free Transformer, where the latent variable comes in.
TEST_F(FewerLayersTest, ModelsWithLayersOfTheirOwnStillCompile) {
  const std::string path = Model("free_transformer", 12);
  const auto outline = compiler::outlineModel(path, Options());
  ASSERT_TRUE(outline.ok()) << outline.status();
  EXPECT_GE(outline->blocks, 4);
  CompileOptions options = Options();
  options.keptBlocks = 2;
  const proto::Plan fewer = Compile(path, options), all = Compile(path, Options());
  EXPECT_LT(CountParameters(fewer), CountParameters(all));
  EXPECT_EQ(Compile(Model("gpt2", 2), options).SerializeAsString(),
            Compile(Model("gpt2", 2), Options()).SerializeAsString());
}

}  // namespace
}  // namespace ft
