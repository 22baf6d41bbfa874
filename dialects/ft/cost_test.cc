// FLOPs, bytes, scratch and in-place rules of ops, against the formulas of docs/reference/cost.md worked out
// by hand.
#include <gtest/gtest.h>

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace mlir::ft {
namespace {

// Two FLOPs an element.
constexpr const char *kUpdate = R"(
func.func private @step(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %v: tensor<1024xf32>,
                        %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
    attributes {ft.update} {
  %s = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %n = ft.sub %p, %s : tensor<1024xf32>
  return %n, %m, %v : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
})";

// Parses the body of a function and keeps its ops alive.
class Cost : public testing::Test {
protected:
  // The only op that costs or computes something, the last before return.
  Operation *parse(const std::string &arguments, const std::string &body) {
    context.loadDialect<FtDialect, func::FuncDialect>();
    std::string text = "ft.unit @u {elements = 2048 : i64}\nfunc.func @f(" + arguments + ") {\n" + body +
                       "\nreturn\n}\n" + kUpdate + kComposites;
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return nullptr;
    auto function = *module->getOps<func::FuncOp>().begin();
    return function.getBody().front().getTerminator()->getPrevNode();
  }

  uint64_t flops(const std::string &arguments, const std::string &body) {
    auto cost = llvm::dyn_cast_or_null<CostOpInterface>(parse(arguments, body));
    EXPECT_TRUE(cost);
    return cost ? cost.getFlops() : 0;
  }

  // What products and calls run: two FLOPs an element, and one.
  static constexpr const char *kComposites = R"(
    func.func private @gelu(%x: tensor<6x8xf32>) -> tensor<6x8xf32>
        attributes {ft.composite, ft.origin = #ft.origin<body, "ft.gelu", {approximate = "tanh"}>} {
      %a = ft.silu %x : tensor<6x8xf32>
      %y = ft.mul %a, %x : tensor<6x8xf32>
      return %y : tensor<6x8xf32>
    }
    func.func private @gelu.grad(%x: tensor<6x8xf32>, %dy: tensor<6x8xf32>) -> tensor<6x8xf32>
        attributes {ft.composite} {
      %dx = ft.mul %x, %dy : tensor<6x8xf32>
      return %dx : tensor<6x8xf32>
    }
    func.func private @sum_rows(%x: tensor<6x8xf32>) -> tensor<8xf32> attributes {ft.cluster} {
      %sum = ft.reduce "sum" %x over [0] : tensor<6x8xf32> -> tensor<8xf32>
      return %sum : tensor<8xf32>
    }
    func.func private @product(%x: tensor<6x8xf32>, %w: tensor<8x8xf32>) -> tensor<6x8xf32>
        attributes {ft.composite} {
      %a = ft.silu %x : tensor<6x8xf32>
      %y = ft.matmul %a, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
      return %y : tensor<6x8xf32>
    })";

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Cost, MatmulCountsTwoPerMultiplyAddAndTheBias) {
  EXPECT_EQ(flops("%a: tensor<2x3x4xf32>, %b: tensor<4x6xf32>, %c: tensor<6xf32>",
                  "%0 = ft.matmul %a, %b bias %c : (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> "
                  "tensor<2x3x6xf32>"),
            2u * 6 * 4 * 6 + 6 * 6);
  EXPECT_EQ(
      flops("%a: tensor<2x3x4xf32>, %b: tensor<2x3x6xf32>",
            "%0 = ft.matmul %a, %b transpose_a : (tensor<2x3x4xf32>, tensor<2x3x6xf32>) -> tensor<4x6xf32>"),
      2u * 6 * 4 * 6);
}

TEST_F(Cost, CausalAttentionCountsHalfOfThePairs) {
  const std::string arguments = "%q: tensor<2x5x8xf32>, %k: tensor<2x5x4xf32>";
  const std::string types = " : (tensor<2x5x8xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> "
                            "(tensor<2x5x8xf32>, tensor<2x4x5xf32>)";
  EXPECT_EQ(flops(arguments, "%0, %1 = ft.attention %q, %k, %k heads 4 kv_heads 2 causal" + types),
            4u * 2 * 15 * 8);
  EXPECT_EQ(flops(arguments, "%0, %1 = ft.attention %q, %k, %k heads 4 kv_heads 2" + types), 4u * 2 * 25 * 8);
}

// Of five positions with a window of two each sees itself and the one before, or also the one behind.
TEST_F(Cost, AttentionCountsThePairsOfItsWindow) {
  const std::string arguments = "%q: tensor<2x5x8xf32>, %l: tensor<2x4x5xf32>";
  const std::string q = "tensor<2x5x8xf32>", lse = "tensor<2x4x5xf32>";
  const auto forward = [&](const std::string &form) {
    return flops(arguments, "%0, %1 = ft.attention %q, %q, %q heads 4 kv_heads 4 " + form + " : (" + q +
                                ", " + q + ", " + q + ") -> (" + q + ", " + lse + ")");
  };
  EXPECT_EQ(forward("causal window 2"), 4u * 2 * 9 * 8);
  EXPECT_EQ(forward("window 2"), 4u * 2 * 13 * 8);
  EXPECT_EQ(forward("causal window 1"), 4u * 2 * 5 * 8);
  EXPECT_EQ(forward("causal window 6"), 4u * 2 * 15 * 8);
  EXPECT_EQ(forward("window 5 softcap 2.0"), 4u * 2 * 25 * 8);
  EXPECT_EQ(flops(arguments,
                  "%0:3 = ft.attention_grad %q, %q, %q, %q, %q, %l heads 4 kv_heads 4 causal window 2 : (" +
                      q + ", " + q + ", " + q + ", " + q + ", " + q + ", " + lse + ") -> (" + q + ", " + q +
                      ", " + q + ")"),
            10u * 2 * 9 * 8);
}

TEST_F(Cost, LinearCrossEntropyCountsItsProducts) {
  EXPECT_EQ(flops("%x: tensor<2x3x4xf32>, %w: tensor<10x4xf32>, %t: tensor<2x3xi32>",
                  "%0 = ft.linear_cross_entropy %x, %w, %t : (tensor<2x3x4xf32>, tensor<10x4xf32>, "
                  "tensor<2x3xi32>) -> "
                  "tensor<f32>"),
            6u * 10 * (2 * 4 + 4));
}

// FLOPs of the two ops; the product is written where backward wants it, and never read again.
TEST_F(Cost, ProductWithGeluIsTheTwo) {
  const std::string arguments =
      "%a: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %x: tensor<6x8xf32>";
  const std::string forward =
      "%0:2 = ft.matmul_gelu %a, %w bias %b then @gelu : (tensor<6x4xf32>, tensor<4x8xf32>, "
      "tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>)";
  const std::string backward = "%0 = ft.matmul_gelu_grad %a, %w at %x then @gelu.grad : tensor<6x4xf32>, "
                               "tensor<4x8xf32>, tensor<6x8xf32>";
  EXPECT_EQ(flops(arguments, forward), (2u * 4 + 1 + 2) * 6 * 8);
  EXPECT_EQ(flops(arguments, backward), (2u * 4 + 1) * 6 * 8);
  auto kernel = cast<CostOpInterface>(parse(arguments, forward));
  EXPECT_EQ(kernel.getModelFlops(), 2u * 4 * 6 * 8);
  EXPECT_EQ(kernel.getBytes(), (6u * 4 + 4 * 8 + 8 + 2 * 6 * 8) * 4);
  EXPECT_EQ(cast<CostOpInterface>(parse(arguments, backward)).getBytes(), (6u * 4 + 4 * 8 + 2 * 6 * 8) * 4);
}

TEST_F(Cost, GradientsOfWeightAndBiasAreTheTwo) {
  const std::string arguments = "%x: tensor<6x4xf32>, %dy: tensor<6x8xf32>";
  auto kernel = cast<CostOpInterface>(
      parse(arguments, "%0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum_rows partial_bytes [0, 0] "
                       ": (tensor<6x4xf32>, tensor<6x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)"));
  EXPECT_EQ(kernel.getModelFlops(), 2u * 4 * 6 * 8);
  EXPECT_EQ(kernel.getFlops(), 2u * 4 * 6 * 8 + 6 * 8);
  EXPECT_EQ(kernel.getBytes(), (6u * 4 + 6 * 8 + 4 * 8 + 8) * 4);
  EXPECT_EQ(flops(arguments, "%0:2 = ft.matmul_bias_grad %dy, %x transpose_a beside @sum_rows of_a "
                             "partial_bytes [0, 0] : (tensor<6x8xf32>, tensor<6x4xf32>) -> (tensor<8x4xf32>, "
                             "tensor<8xf32>)"),
            2u * 4 * 6 * 8 + 6 * 8);
}

TEST_F(Cost, OptimizerCountsTheWholeUnit) {
  const std::string arguments = "%g: !ft.slice<@u, f32>, %s: tensor<2x1xf32>";
  const std::string body = "ft.update @u by @step(%g, %s) states [\"a\", \"b\"] "
                           ": !ft.slice<@u, f32>, tensor<2x1xf32>";
  EXPECT_EQ(flops(arguments, body), 2u * 2048);
  Operation *optimizer = parse(arguments, body);
  EXPECT_EQ(cast<CostOpInterface>(optimizer).getBytes(), 7u * 4 * 2048);
  (*module->getOps<UnitOp>().begin()).setMaster(BFloat16Type::get(&context));
  EXPECT_EQ(cast<CostOpInterface>(optimizer).getBytes(), (4u + 2 * 2 + 4 * 4) * 2048);
  EXPECT_EQ(flops(arguments, "%0 = ft.sum_squares %g : (!ft.slice<@u, f32>) -> tensor<21xi64>"), 2u * 2048);
  EXPECT_EQ(flops(arguments + ", %n: tensor<f32>",
                  "%0 = ft.sum_squares %g times %n : (!ft.slice<@u, f32>, tensor<f32>) -> tensor<21xi64>"),
            3u * 2048);
}

TEST_F(Cost, BytesCountAnOperandOnce) {
  Operation *op = parse("%x: tensor<3x4xf32>", "%0 = ft.mul %x, %x : tensor<3x4xf32>, tensor<3x4xf32>");
  ASSERT_TRUE(op);
  EXPECT_EQ(cast<CostOpInterface>(op).getBytes(), 2u * 48);
}

// What a cluster can have goes through memory with operands and results alone; the product reads and writes.
TEST_F(Cost, CallsAreTheirBodies) {
  auto call = cast<CallOp>(
      parse("%x: tensor<6x8xf32>", "%0 = ft.call @gelu(%x) : (tensor<6x8xf32>) -> tensor<6x8xf32>"));
  EXPECT_EQ(call.getFlops(), 2u * 6 * 8);
  EXPECT_EQ(call.getBytes(), 2u * 6 * 8 * 4);
  EXPECT_EQ(call.getKernelName(), "gelu");
  EXPECT_EQ(call.getOpClass(), "mlp");
  EXPECT_TRUE(call.isCheapToRecompute());
  call = cast<CallOp>(
      parse("%x: tensor<6x8xf32>, %w: tensor<8x8xf32>",
            "%0 = ft.call @product(%x, %w) : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>"));
  EXPECT_EQ(call.getBytes(), 2 * (2u * 6 * 8 + 8 * 8) * 4);
  EXPECT_EQ(call.getKernelName(), "product");
  EXPECT_EQ(call.getOpClass(), "");
  EXPECT_FALSE(call.isCheapToRecompute());
}

// The sum runs after the product, in the same scratch.
TEST_F(Cost, ScratchOfSumsIsThatOfTheProduct) {
  const auto bytes = [&](const char *onGpu) {
    auto kernel = cast<KernelOpInterface>(parse(
        "%x: tensor<6x4xf32>, %dy: tensor<6x8xf32>",
        std::string("%0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum_rows partial_bytes [64, ") +
            onGpu + "] : (tensor<6x4xf32>, tensor<6x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)"));
    EXPECT_EQ(kernel.getWorkspaceBytes(::ft::DeviceClass::kCpu), 64u);
    return kernel.getWorkspaceBytes(::ft::DeviceClass::kCuda);
  };
  EXPECT_EQ(bytes("96"), 32u << 20);
  EXPECT_EQ(bytes("67108864"), 64u << 20);
}

TEST_F(Cost, ScratchIsThatOfTheDevice) {
  Operation *op = parse("%a: tensor<2x3x4xf32>, %b: tensor<4x6xf32>",
                        "%0 = ft.matmul %a, %b : (tensor<2x3x4xf32>, tensor<4x6xf32>) -> tensor<2x3x6xf32>");
  ASSERT_TRUE(op);
  EXPECT_EQ(cast<KernelOpInterface>(op).getWorkspaceBytes(::ft::DeviceClass::kCpu), 0u);
  EXPECT_EQ(cast<KernelOpInterface>(op).getWorkspaceBytes(::ft::DeviceClass::kCuda), 32u << 20);
  op = parse("%x: tensor<3x4xf32>", "%0 = ft.scale %x, 2.0 : tensor<3x4xf32>");
  ASSERT_TRUE(op);
  for (::ft::DeviceClass device : ::ft::kDeviceClasses)
    EXPECT_EQ(cast<KernelOpInterface>(op).getWorkspaceBytes(device), 0u);
}

// Products that the result needs: no bias, no elementwise work, nothing that a kernel does a second time.
TEST_F(Cost, ModelFlopsAreThoseOfProducts) {
  auto model = [&](const std::string &arguments, const std::string &body) {
    auto cost = llvm::dyn_cast_or_null<CostOpInterface>(parse(arguments, body));
    EXPECT_TRUE(cost);
    return cost ? cost.getModelFlops() : 0;
  };
  EXPECT_EQ(model("%a: tensor<2x3x4xf32>, %b: tensor<4x6xf32>, %c: tensor<6xf32>",
                  "%0 = ft.matmul %a, %b bias %c : (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> "
                  "tensor<2x3x6xf32>"),
            2u * 6 * 4 * 6);
  const std::string q = "tensor<2x5x8xf32>", k = "tensor<2x5x4xf32>", lse = "tensor<2x4x5xf32>";
  EXPECT_EQ(model("%q: " + q + ", %k: " + k + ", %l: " + lse,
                  "%0, %1, %2 = ft.attention_grad %q, %q, %k, %k, %q, %l heads 4 kv_heads 2 causal : (" + q +
                      ", " + q + ", " + k + ", " + k + ", " + q + ", " + lse + ") -> (" + q + ", " + k +
                      ", " + k + ")"),
            2u * 4u * 2 * 15 * 8)
      << "twice the two products of forward";
  EXPECT_EQ(model("%x: tensor<2x3x4xf32>, %w: tensor<10x4xf32>, %t: tensor<2x3xi32>",
                  "%0:3 = ft.linear_cross_entropy_loss_grad %x, %w, %t dloss 1.0 : (tensor<2x3x4xf32>, "
                  "tensor<10x4xf32>, tensor<2x3xi32>) -> (tensor<f32>, tensor<2x3x4xf32>, tensor<10x4xf32>)"),
            3u * 2 * 6 * 10 * 4);
  EXPECT_EQ(model("%x: tensor<3x4xf32>", "%0 = ft.mul %x, %x : tensor<3x4xf32>, tensor<3x4xf32>"), 0u);
}

TEST_F(Cost, AccumulatorsAreTakenOver) {
  Operation *op =
      parse("%d: tensor<f32>, %x: tensor<3x4xf32>, %w: tensor<8x4xf32>, %t: tensor<3xi32>",
            "%0:2 = ft.linear_cross_entropy_grad %d, %x, %w, %t into %w : (tensor<f32>, tensor<3x4xf32>, "
            "tensor<8x4xf32>, tensor<3xi32>, tensor<8x4xf32>) -> (tensor<3x4xf32>, tensor<8x4xf32>)");
  ASSERT_TRUE(op);
  auto kernel = cast<KernelOpInterface>(op);
  EXPECT_FALSE(kernel.getTiedOperand(0));
  EXPECT_EQ(kernel.getTiedOperand(1), op->getOperand(4));
  EXPECT_FALSE(kernel.isCheapToRecompute());
}

TEST_F(Cost, ElementwiseOpsMayWorkInPlace) {
  Operation *op = parse("%x: tensor<3x4xf32>", "%0 = ft.scale %x, 2.0 : tensor<3x4xf32>");
  ASSERT_TRUE(op);
  auto kernel = cast<KernelOpInterface>(op);
  EXPECT_EQ(kernel.getReusableOperand(0), op->getOperand(0));
  EXPECT_FALSE(kernel.getTiedOperand(0));
  EXPECT_TRUE(kernel.isCheapToRecompute());
}

} // namespace
} // namespace mlir::ft
