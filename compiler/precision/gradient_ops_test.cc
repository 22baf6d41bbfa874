#include "compiler/precision/gradient_ops.h"

#include <gtest/gtest.h>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/Twine.h"

namespace ft::compiler {
namespace {

using namespace mlir;

// Ops carry the discardable attribute `id`, by which the tests find them.
constexpr const char *kModule = R"(
  ft.unit @u {elements = 8192 : i64}
  ft.parameter @w : tensor<4x8xf32> = #ft.init<normal, 1.0> {offset = 0 : i64, unit = @u}
  ft.parameter @b : tensor<8xf32> = #ft.init<normal, 1.0> {offset = 1024 : i64, unit = @u}
  func.func @train_step(%x: tensor<3x4xf32>, %dy: tensor<3x8xf32>, %other: tensor<3x8xf32>, %one: tensor<8xf32>) -> tensor<8xf32> {
    )";

constexpr const char *kEnd = R"(
    %flat = ft.pack %w, %b at [@w, @b] : (tensor<4x8xf32>, tensor<8xf32>) -> !ft.flat<@u, f32>
    return %r : tensor<8xf32>
  })";

class GradientOpsTest : public ::testing::Test {
protected:
  GradientOpsTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<mlir::ft::FtDialect, func::FuncDialect>();
  }

  // The ids of the ops whose results are gradients, joined.
  std::string gradients(const llvm::Twine &body) {
    module = parseSourceString<ModuleOp>((llvm::Twine(kModule) + body + kEnd).str(), &context);
    if (!module)
      return "does not parse";
    Block &block = module->lookupSymbol<func::FuncOp>("train_step").getBody().front();
    GradientOps ops(block);
    std::string ids;
    for (Operation &op : block)
      for (OpResult result : op.getResults())
        if (ops.contains(result))
          ids += op.getAttrOfType<StringAttr>("id").getValue().str() + " ";
    return ids;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr const char *kMatmul = "ft.matmul %x, %dy transpose_a {id = \"product\"} : (tensor<3x4xf32>, "
                                "tensor<3x8xf32>) -> tensor<4x8xf32>\n";

TEST_F(GradientOpsTest, WhatIsPackedIsAGradient) {
  EXPECT_EQ(gradients(llvm::Twine("%w = ") + kMatmul + R"(
    %b = ft.reduce "sum" %dy over [0] {id = "sum"} : tensor<3x8xf32> -> tensor<8xf32>
    %r = ft.scale %one, 2.0 {id = "other"} : tensor<8xf32>)"),
            "product sum ");
}

TEST_F(GradientOpsTest, SumsContinueGradients) {
  EXPECT_EQ(gradients(llvm::Twine("%first = ") + kMatmul + R"(
    %w = ft.matmul %x, %other into %first transpose_a {id = "continued"} : (tensor<3x4xf32>, tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %p = ft.reduce "sum" %dy over [0] {id = "p"} : tensor<3x8xf32> -> tensor<8xf32>
    %q = ft.fill 0.0 {id = "q"} : tensor<8xf32>
    %s = ft.scale %q, 2.0 {id = "s"} : tensor<8xf32>
    %b = ft.add %p, %s {id = "sum"} : tensor<8xf32>, tensor<8xf32>
    %r = ft.scale %one, 2.0 {id = "other"} : tensor<8xf32>)"),
            "product continued p q s sum ");
}

// One that is also an activation stays in the compute type, and takes those along that are summed with it.
TEST_F(GradientOpsTest, WhatAnActivationReadsIsNone) {
  EXPECT_EQ(gradients(llvm::Twine("%w = ") + kMatmul + R"(
    %p = ft.reduce "sum" %dy over [0] {id = "p"} : tensor<3x8xf32> -> tensor<8xf32>
    %q = ft.reduce "sum" %other over [0] {id = "q"} : tensor<3x8xf32> -> tensor<8xf32>
    %b = ft.add %p, %q {id = "sum"} : tensor<8xf32>, tensor<8xf32>
    %r = ft.mul %p, %one {id = "reader"} : tensor<8xf32>, tensor<8xf32>)"),
            "product ");
}

// So does a sum with what only a kernel of activations can make.
TEST_F(GradientOpsTest, ASumWithAnActivationIsNone) {
  EXPECT_EQ(gradients(llvm::Twine("%w = ") + kMatmul + R"(
    %p = ft.reduce "sum" %dy over [0] {id = "p"} : tensor<3x8xf32> -> tensor<8xf32>
    %q = ft.mul %one, %one {id = "q"} : tensor<8xf32>, tensor<8xf32>
    %b = ft.add %p, %q {id = "sum"} : tensor<8xf32>, tensor<8xf32>
    %r = ft.scale %one, 2.0 {id = "other"} : tensor<8xf32>)"),
            "product ");
}

// A product that reads its own sum so far as an operand, too.
TEST_F(GradientOpsTest, ASumThatIsReadTwiceIsNone) {
  EXPECT_EQ(gradients(R"(
    %sq = ft.fill 1.0 {id = "sq"} : tensor<4x8xf32>
    %w = ft.matmul %x, %dy into %sq transpose_a {id = "product"} : (tensor<3x4xf32>, tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %twice = ft.mul %sq, %sq {id = "reader"} : tensor<4x8xf32>, tensor<4x8xf32>
    %b = ft.fill 0.0 {id = "zero"} : tensor<8xf32>
    %r = ft.scale %one, 2.0 {id = "other"} : tensor<8xf32>)"),
            "zero ");
}

} // namespace
} // namespace ft::compiler
