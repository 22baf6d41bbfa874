// Generated code and the written kernels give the same bits for every row of the table on floats: the
// formulas of compiler/codegen/lane_math.cc are those of runtime/backends/cpu/simd/vector_math.h.
#include <cmath>
#include <cstring>

#include "compiler/codegen/testing/code_test.h"
#include "llvm/ADT/StringExtras.h"
#include "runtime/kernels/cluster/cpu_loops.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;
using Domain = ElementwiseDomain;

constexpr int64_t kElements = 20011;

// Of every size, with what is none.
std::vector<float> floats(uint64_t seed) {
  std::vector<double> plain = numbers(kElements, seed);
  std::vector<float> result(kElements);
  for (int64_t i = 0; i < kElements; ++i) {
    double scale = i % 4 == 0 ? std::exp2(static_cast<double>(i % 240) - 120) : i % 4 == 1 ? 50 : 1;
    result[i] = static_cast<float>(plain[i] * scale);
  }
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, 0x1.fffffep127f, 88.73f, -87.34f};
  for (size_t i = 0; i < std::size(special); ++i) result[97 * (i + seed)] = special[i];
  return result;
}

bool same(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)); }

class SameBitsTest : public CodeTest {
 protected:
  func::FuncOp bodyOf(const ElementwiseRow& row, const std::string& parameters) {
    std::vector<std::string> arguments, operands, types;
    for (int i = 0; i < row.operands; ++i) {
      operands.push_back("%x" + std::to_string(i));
      types.push_back(row.domain == Domain::kSelect && i == 0 ? "tensor<$Cxi1>" : "tensor<$Cxf32>");
      arguments.push_back(operands.back() + ": " + types.back());
    }
    if (!parameters.empty()) operands.push_back(parameters);
    const std::string result = row.domain == Domain::kCompare ? "tensor<$Cxi1>" : "tensor<$Cxf32>";
    return parse("func.func @f(" + llvm::join(arguments, ", ") + ") -> " + result + " {\n%r = ft." +
                     std::string(row.name) + " " + llvm::join(operands, ", ") + " : " +
                     llvm::join(types, ", ") + "\nreturn %r : " + result + "\n}",
                 {1, kElements});
  }

  void check(const ElementwiseRow& row, const std::string& text, std::array<double, 2> parameters,
             X86Level level, cpu::Isa isa) {
    SCOPED_TRACE(std::string(row.name) + " " + text + ", " + nameOf(level).str());
    FailureOr<GeneratedKernel> generated = generateKernel(bodyOf(row, text), level);
    ASSERT_TRUE(succeeded(generated));
    MappedKernel kernel(std::move(*generated));
    std::vector<float> in[3], result(kElements), written(kElements);
    std::vector<uint8_t> truths(kElements), resultTruths(kElements);
    std::vector<int64_t> conditions(kElements), writtenTruths(kElements);
    std::vector<void*> operands;
    const void* chunks[3] = {};
    for (int i = 0; i < 3; ++i) {
      in[i] = floats(i + 1);
      chunks[i] = in[i].data();
      if (i < row.operands) operands.push_back(in[i].data());
    }
    for (int64_t i = 0; i < kElements; ++i) conditions[i] = truths[i] = i % 3 == 0;
    if (row.domain == Domain::kSelect) {
      operands[0] = truths.data();
      chunks[0] = conditions.data();
    }
    const bool isTruth = row.domain == Domain::kCompare;
    operands.push_back(isTruth ? static_cast<void*>(resultTruths.data()) : result.data());
    kernel.call(operands.data(), kernel.interface().rows);
    void* to = isTruth ? static_cast<void*>(writtenTruths.data()) : written.data();
    cpu::LoopsFor(isa).primitives.of_floats[static_cast<int>(row.kind)](chunks, to, parameters.data(),
                                                                        kElements);
    for (int64_t i = 0; i < kElements; ++i)
      ASSERT_TRUE(isTruth ? resultTruths[i] == writtenTruths[i] : same(result[i], written[i]))
          << "of " << in[0][i] << ", " << in[1][i] << ": " << result[i] << ", written " << written[i];
  }

  void checkEveryRow(X86Level level, cpu::Isa isa) {
    if (!canRun(level) || !llvm::is_contained(cpu::UsableIsas(), isa))
      GTEST_SKIP() << "no " << nameOf(level).str();
    for (const ElementwiseRow& row : kElementwiseRows) {
      if (row.domain == Domain::kInteger || row.domain == Domain::kLogic) continue;
      if (row.kind == Elementwise::kPow)
        for (double power : {0.0, 1.0, 3.0, -2.0, 0.5, -0.5, 2.75, -15.5, 17.0, 18.0})
          check(row, std::to_string(power), {power}, level, isa);
      else if (row.num_parameters() == 2)
        check(row, "-0.75, 1.5", {-0.75, 1.5}, level, isa);
      else if (row.num_parameters() == 1)
        check(row, "-0.375", {-0.375}, level, isa);
      else
        check(row, "", {}, level, isa);
    }
  }
};

// Neither has fma.
TEST_F(SameBitsTest, V2) { checkEveryRow(X86Level::V2, cpu::Isa::kGeneric); }
TEST_F(SameBitsTest, V3) { checkEveryRow(X86Level::V3, cpu::Isa::kX86V3); }
TEST_F(SameBitsTest, V4) { checkEveryRow(X86Level::V4, cpu::Isa::kX86V4); }

}  // namespace
}  // namespace ft::compiler::testing
