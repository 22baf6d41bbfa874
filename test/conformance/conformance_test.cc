// Every case on the CPU backend: each instruction set, one to three threads, apart and in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/thread_scratch.h"
#include "runtime/kernels/matmul/cpu_loops.h"
#if FT_CPU_X86
#include "runtime/backends/cpu/testing/emulated_bf16.h"
#endif
#include "test/conformance/cpu_bench.h"
#include "test/conformance/fused_gelu.h"
#include "test/conformance/harness.h"

namespace ft::conformance {
namespace {

class CpuConformance : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override { RegisterCpuKernels(registry_, GetParam()); }

  std::string Compare(const Case& c, const Arrays& got) const {
    return conformance::Compare(c, got, DeviceClass::kCpu, GetParam() >= cpu::Isa::kX86V4Bf16);
  }

  // An emulated instruction set is slow, and only its products of bf16 are its own.
  static bool Concerns(const Case& c) {
    if (GetParam() <= cpu::BestIsa()) return true;
    const bool products = c.op.find("matmul") != std::string::npos ||
                          c.op.find("attention") != std::string::npos ||
                          c.op.find("linear_cross_entropy") != std::string::npos;
    return products && std::any_of(c.in.begin(), c.in.end(),
                                   [](const Array& array) { return array.dtype == DType::kBF16; });
  }

  absl::StatusOr<Arrays> Run(const Case& c, int threads, bool in_place) {
    CpuBench bench(registry_, threads);
    std::memset(cpu::ThreadScratch(), 0xFF, cpu::kScratchBytes);  // NaN, whatever reads what was not written
    return RunCase(bench, c, in_place);
  }

  KernelRegistry registry_;
};

// No kernel's result depends on the number of threads.
TEST_P(CpuConformance, MatchesReferenceWithAnyThreads) {
  for (const Case& c : AllCases()) {
    if (!Concerns(c)) continue;
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> one = Run(c, 1, false), three = Run(c, 3, false);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_TRUE(three.ok()) << three.status();
    EXPECT_EQ(Compare(c, *one), "");
    EXPECT_EQ(DifferentBits(*one, *three), "");
    if (c.rules.reusable.empty()) continue;
    SCOPED_TRACE("in place");
    const absl::StatusOr<Arrays> in_place = Run(c, 2, true);
    ASSERT_TRUE(in_place.ok()) << in_place.status();
    EXPECT_EQ(Compare(c, *in_place), "");
  }
}

TEST_P(CpuConformance, ProductWithGeluHasTheBitsOfTheTwo) {
  CpuBench bench(registry_, 2);
  for (const Case& c : FusedGeluCases()) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> apart = RunProductThenGelu(bench, c), fused = RunCase(bench, c, false);
    ASSERT_TRUE(apart.ok()) << apart.status();
    ASSERT_TRUE(fused.ok()) << fused.status();
    EXPECT_EQ(DifferentBits(*fused, *apart), "");
  }
}

TEST_P(CpuConformance, RefusesWhatIsTooSmall) {
  for (Case c : AllCases()) {
    if (!Concerns(c)) continue;
    SCOPED_TRACE(c.op + " " + c.label);
    if (c.rules.workspace_bytes > 0) {
      Case small = c;
      small.rules.workspace_bytes -= 4;
      EXPECT_EQ(Run(small, 1, false).status().code(), absl::StatusCode::kInvalidArgument);
    }
    c.expected.emplace_back(Scalar(0));
    const absl::Status status = Run(c, 1, false).status();
    // One result too many is never right; split then has a part too many.
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

#if FT_CPU_X86
// Machines without the instructions test their emulation: here it is shown to be that of the instructions.
TEST(Emulation, OfAttentionHasTheBitsOfTheInstructions) {
  if (cpu::BestIsa() < cpu::Isa::kX86V4Bf16) GTEST_SKIP() << "skipped: no AVX512_BF16";
  const struct {
    cpu::Isa isa;
    const cpu::Loops& emulated;
  } sets[] = {{cpu::Isa::kX86V4Bf16, cpu::EmulatedBf16Loops()},
              {cpu::Isa::kX86V4Amx, cpu::EmulatedAmxLoops()}};
  for (const auto& [isa, emulated] : sets) {
    if (isa > cpu::BestIsa()) continue;
    KernelRegistry registry;
    RegisterCpuKernels(registry, isa);
    CpuBench bench(registry, 1);
    const cpu::Loops& native = cpu::LoopsFor(isa);
    for (const char* op : {"attention", "attention_grad"}) {
      for (const Case* c : CasesOf(op)) {
        if (c->in[0].dtype != DType::kBF16) continue;
        SCOPED_TRACE(std::string(cpu::Name(isa)) + " " + c->op + " " + c->label);
        const absl::StatusOr<Arrays> by_instruction = RunCase(bench, *c, false);
        cpu::SetLoopsForTest(isa, emulated);
        const absl::StatusOr<Arrays> by_emulation = RunCase(bench, *c, false);
        cpu::SetLoopsForTest(isa, native);
        ASSERT_TRUE(by_instruction.ok() && by_emulation.ok());
        EXPECT_EQ(DifferentBits(*by_instruction, *by_emulation), "");
      }
    }
  }
}
#endif

// Programs name their tests by them without making a case.
TEST(CaseLists, NameTheOpsOfTheirCases) {
  const std::vector<std::string> ops = Ops();
  EXPECT_EQ(std::set<std::string>(ops.begin(), ops.end()).size(), ops.size()) << "an op is in two lists";
  std::set<std::string> made;
  auto list = CaseLists().begin();
  for (const Case& c : AllCases()) {
    made.insert(c.op);
    list = std::find_if(list, CaseLists().end(), [&](const CaseList& each) {
      return std::find(each.ops.begin(), each.ops.end(), c.op) != each.ops.end();
    });
    ASSERT_NE(list, CaseLists().end()) << c.op << " " << c.label << " is not of a list that names it";
  }
  EXPECT_EQ(made, std::set<std::string>(ops.begin(), ops.end()));
  EXPECT_EQ(CasesOf("loss_count").size(), std::count_if(AllCases().begin(), AllCases().end(),
                                                        [](const Case& c) { return c.op == "loss_count"; }));
  EXPECT_TRUE(CasesOf("none").empty());
}

// AVX512_BF16 and AMX are emulated where the machine lacks them.
std::vector<cpu::Isa> TestedIsas() {
  std::vector<cpu::Isa> isas = cpu::UsableIsas();
#if FT_CPU_X86
  const cpu::Isa best = isas.back();
  if (best < cpu::Isa::kX86V3) return isas;
  if (best < cpu::Isa::kX86V4Bf16) {
    cpu::SetLoopsForTest(cpu::Isa::kX86V4Bf16, cpu::EmulatedBf16Loops());
    isas.push_back(cpu::Isa::kX86V4Bf16);
  }
  if (best < cpu::Isa::kX86V4Amx) {
    cpu::SetLoopsForTest(cpu::Isa::kX86V4Amx, cpu::EmulatedAmxLoops());
    isas.push_back(cpu::Isa::kX86V4Amx);
  }
#endif
  return isas;
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, CpuConformance, testing::ValuesIn(TestedIsas()), [](const auto& info) {
  return "Isa" + std::to_string(static_cast<int>(info.param));
});

}  // namespace
}  // namespace ft::conformance
