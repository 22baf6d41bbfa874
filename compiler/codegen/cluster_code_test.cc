// Bodies of norms, activations and an optimizer, against f64.
#include "compiler/codegen/testing/body_cases.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

class ClusterCodeTest : public CodeTest {
protected:
  void check(const BodyCase &bodyCase, Extents extents, const std::string &element) {
    SCOPED_TRACE(std::string(bodyCase.name) + " " + std::to_string(extents.rows) + "x" +
                 std::to_string(extents.columns) + " of " + element);
    func::FuncOp body = parse(bodyCase.text, extents, element);
    ASSERT_TRUE(body);
    std::vector<HostTensor> inputs = inputsOf(body, bodyCase);
    std::vector<HostTensor> expected = evaluate(body, inputs);
    for (auto &[level, results] : run(body, inputs))
      for (size_t i = 0; i < expected.size(); ++i) {
        SCOPED_TRACE("result " + std::to_string(i) + ", " + nameOf(level).str());
        compare(results[i], expected[i], bodyCase);
      }
  }
};

// The op as a cluster of its own.
HostTensor runAlone(Operation *op, const std::vector<HostTensor> &operands, X86Level level) {
  OwningOpRef<ModuleOp> module = alone(op);
  HostTensor result(cast<RankedTensorType>(op->getResult(0).getType()));
  FailureOr<GeneratedKernel> generated = generateKernel(*module->getOps<func::FuncOp>().begin(), level);
  EXPECT_TRUE(succeeded(generated));
  MappedKernel kernel(std::move(*generated));
  result.fromMemory(runOn(kernel, operands, {result.type}, kernel.interface().rows)[0].data());
  return result;
}

TEST_F(ClusterCodeTest, ClustersOfOneOpGiveTheSameBits) {
  for (const BodyCase &bodyCase : kBodies)
    for (const char *element : {"f32", "bf16", "f16"})
      for (X86Level level : {X86Level::V2, X86Level::V3}) {
        SCOPED_TRACE(std::string(bodyCase.name) + " of " + element + ", " + nameOf(level).str());
        func::FuncOp body = parse(bodyCase.text, {37, 83}, element);
        if (!canRun(level))
          continue;
        std::vector<HostTensor> inputs = inputsOf(body, bodyCase);
        std::vector<HostTensor> apart =
            evaluate(body, inputs, [&](Operation *op, const std::vector<HostTensor> &operands) {
              return isMoved(op) ? evaluateOp(op, operands) : runAlone(op, operands, level);
            });
        MappedKernel kernel(std::move(*generateKernel(body, level)));
        auto types = llvm::map_to_vector(apart, [](const HostTensor &result) { return result.type; });
        std::vector<std::string> together = runOn(kernel, inputs, types, kernel.interface().rows);
        ASSERT_EQ(together.size(), apart.size());
        for (size_t i = 0; i < apart.size(); ++i)
          EXPECT_TRUE(together[i] == apart[i].toMemory()) << "result " << i;
      }
}

TEST_F(ClusterCodeTest, EveryBodyInEveryShapeAndType) {
  for (auto [b, body] : llvm::enumerate(kBodies))
    for (auto [s, extents] : llvm::enumerate(kShapes))
      check(body, extents, elementOf(b, s));
}

TEST_F(ClusterCodeTest, RowsAreCutIntoBlocksByTheShapeAlone) {
  FailureOr<KernelInterface> interface = interfaceOf(parse(kRmsNormGrad, {4096, 768}));
  ASSERT_TRUE(succeeded(interface));
  EXPECT_EQ(interface->rows, 4096);
  EXPECT_EQ(interface->blockRows, 64);
  EXPECT_EQ(interface->chunks, 12);
  EXPECT_EQ(interface->partialBytes, (llvm::SmallVector<int64_t>{64 * 768 * 4, 64 * 768 * 4}));
}

TEST_F(ClusterCodeTest, TheSameBodyGivesTheSameBytes) {
  for (const BodyCase &body : kBodies)
    for (X86Level level : kX86Levels) {
      FailureOr<GeneratedKernel> first = generateKernel(parse(body.text, {5, 771}), level);
      FailureOr<GeneratedKernel> second = generateKernel(parse(body.text, {5, 771}), level);
      ASSERT_TRUE(succeeded(first) && succeeded(second));
      EXPECT_EQ(first->code, second->code) << body.name;
    }
}

// adamw with its results in place of parameters and moments.
TEST_F(ClusterCodeTest, ResultsMayTakeThePlaceOfArguments) {
  func::FuncOp body = parse(kAdamW, {5, 771});
  std::vector<HostTensor> inputs;
  for (auto [i, type] : llvm::enumerate(body.getArgumentTypes())) {
    inputs.emplace_back(cast<RankedTensorType>(type));
    inputs.back().values = numbers(inputs.back().values.size(), i + 1, true);
  }
  auto results = run(body, inputs);
  for (auto &[level, expected] : results) {
    MappedKernel kernel(std::move(*generateKernel(body, level)));
    std::vector<std::string> memory;
    for (const HostTensor &input : inputs)
      memory.push_back(input.toMemory());
    std::string low(memory[0].size(), '\0');
    void *operands[] = {memory[0].data(), memory[1].data(), memory[2].data(),
                        memory[3].data(), memory[4].data(), memory[0].data(),
                        memory[2].data(), memory[3].data(), low.data()};
    kernel.call(operands, kernel.interface().rows);
    EXPECT_EQ(memory[0], expected[0].toMemory());
    EXPECT_EQ(memory[2], expected[1].toMemory());
    EXPECT_EQ(memory[3], expected[2].toMemory());
  }
}

// Exponentials are kept where the result will be, unless the argument that is there is still to be read.
TEST_F(ClusterCodeTest, WhatIsKeptInAResultSparesTheArgumentInItsPlace) {
  std::string sum = kSoftmax, quotient = "%y = ft.div %e, %ss";
  sum.replace(sum.find(quotient), quotient.size(),
              "%z = ft.div %e, %ss : tensor<$Mxf32>\n%y = ft.add %z, %x");
  for (const std::string &text : {std::string(kSoftmax), sum}) {
    func::FuncOp body = parse(text, {5, 771});
    ASSERT_TRUE(body);
    HostTensor x(cast<RankedTensorType>(body.getArgumentTypes()[0]));
    x.values = numbers(x.values.size(), 3, false);
    for (auto &[level, expected] : run(body, {x})) {
      MappedKernel kernel(std::move(*generateKernel(body, level)));
      std::string memory = x.toMemory();
      void *operands[] = {memory.data(), memory.data()};
      kernel.call(operands, kernel.interface().rows);
      EXPECT_EQ(memory, expected[0].toMemory()) << nameOf(level).str();
    }
  }
}

// What the first result overwrites, the second and a sum over rows still read.
TEST_F(ClusterCodeTest, ArgumentsAreReadBeforeTheirPlaceIsTaken) {
  func::FuncOp body = parse(R"(
func.func @f(%a: tensor<$Mxf32>, %b: tensor<$Mxf32>) -> (tensor<$Mxf32>, tensor<$Mxf32>, tensor<$Cxf32>, tensor<$Cxf32>) {
  %x = ft.neg %a : tensor<$Mxf32>
  %y = ft.shift %b, 1.0 : tensor<$Mxf32>
  %s = ft.reduce "sum" %b over [0] : tensor<$Mxf32> -> tensor<$Cxf32>
  return %x, %y, %s, %s : tensor<$Mxf32>, tensor<$Mxf32>, tensor<$Cxf32>, tensor<$Cxf32>
})",
                            {3, 5});
  std::vector<float> a(15, 2), b(15, 4), y(15), s(5), again(5), partial(5), another(5);
  for (X86Level level : kX86Levels) {
    FailureOr<GeneratedKernel> generated = generateKernel(body, level);
    ASSERT_TRUE(succeeded(generated));
    if (!canRun(level))
      continue;
    MappedKernel kernel(std::move(*generated));
    std::vector<float> inPlace = b;
    void *operands[] = {a.data(), inPlace.data(), inPlace.data(), y.data(),
                        s.data(), again.data(),   partial.data(), another.data()};
    kernel.call(operands, kernel.interface().rows);
    EXPECT_EQ(inPlace, std::vector<float>(15, -2));
    EXPECT_EQ(y, std::vector<float>(15, 5));
    EXPECT_EQ(s, std::vector<float>(5, 12));
    EXPECT_EQ(again, s);
  }
}

} // namespace
} // namespace ft::compiler::testing
