#include "compiler/schedule/timeline.h"

#include <gtest/gtest.h>

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "runtime/plan/testing/targets.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using namespace mlir::ftx;

// Over 4 ranks a slice of the unit has 1024 elements, half of what it would have without padding; the whole
// has 4096.
constexpr const char *kCostedModule = R"(
  ft.unit @u {elements = 2048 : i64}
  %slice = ftx.buffer "slice" parameters unit_slice(@u, 4) persistent
  %there = ftx.buffer "there" optimizer_state unit_slice(@u, 4) host persistent
  ftx.program @train_step {
    %full = ftx.buffer "full" gathered unit_full(@u, 4)
    %scratch = ftx.buffer "scratch" workspace constant(100) cuda(1000)
    %untouched = ftx.buffer "untouched" activations constant(4096)
    %gathered = ftx.start all_gather on gather after compute over shard @u from (%slice : whole f32) to (%full : whole f32)
    ftx.wait %gathered on compute
    ftx.kernel "product" on compute ins(%full : tensor<8xbf16>) outs(%full : tensor<8xbf16>) workspace(%scratch) {flops = 4000 : i64}
    ftx.kernel "update" on compute ins(%full : own f32) outs(%slice : whole f32) {flops = 4000 : i64}
    ftx.release %full
    %copied = ftx.start copy on d2h after compute from (%slice : whole f32) to (%there : whole f32)
    ftx.wait %copied on compute
    %updated = ftx.launch "update" on host_compute after compute ins(%there : whole f32) outs(%there : whole f32) {flops = 9 : i64, bytes = 6000 : i64}
    ftx.wait %updated on compute
  })";

class CostsTest : public ::testing::Test {
protected:
  CostsTest() : context(MLIRContext::Threading::DISABLED), target(RoundTarget()) {
    context.loadDialect<mlir::ft::FtDialect, FtxDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(kCostedModule, &context);
    program = *module->getOps<ProgramOp>().begin();
    target.mutable_f32()->set_reached(1000);
    target.mutable_bf16()->set_reached(2000);
    target.set_kernel_latency_s(0);
    target.set_host_memory_bytes_per_s(1000);
    SetLink(1, 0, 12288, target.mutable_node());
    SetLink(2, 0, 4096, target.mutable_copies());
  }

  Costs costsOver(int ranks) { return *Costs::of(*module, {.replica = 1, .shard = ranks}, target); }

  std::vector<int64_t> live(int ranks) {
    const RangeMax row = liveBytes(program, 9, costsOver(ranks));
    std::vector<int64_t> bytes;
    for (size_t number = 0; number < 9; ++number)
      bytes.push_back(row.at(number));
    return bytes;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  ProgramOp program;
  Target target;
};

TEST_F(CostsTest, SecondsAreThoseOfARank) {
  // The gather: 1 s, and 3/4 of 16384 bytes come from others. The kernels: half a second for 1000 FLOPs in 16
  // bits; half of the unit's. The copy: 2 s and 4096 bytes. The host's: half of its bytes.
  const std::vector<double> expected = {2, 0, 2, 2, 0, 3, 0, 3, 0};
  FailureOr<std::vector<double>> seconds = costsOver(4).secondsOf(program);
  ASSERT_TRUE(succeeded(seconds));
  ASSERT_EQ(seconds->size(), expected.size());
  for (auto [number, second] : llvm::enumerate(*seconds))
    EXPECT_NEAR(second, expected[number], 1e-9) << number;
}

TEST_F(CostsTest, BuffersLiveUntilTheyAreWaitedFor) {
  // The slice throughout, the whole until its release, scratch (rounded up) in one kernel.
  EXPECT_EQ(live(4), (std::vector<int64_t>{20480, 20480, 20736, 20480, 20480, 4096, 4096, 4096, 4096}));
  target.set_cuda(true);
  EXPECT_EQ(live(4)[2], 21504);
}

TEST_F(CostsTest, NothingIsSharedByOneRank) {
  // The gather is a copy of 8192 bytes.
  FailureOr<std::vector<double>> seconds = costsOver(1).secondsOf(program);
  ASSERT_TRUE(succeeded(seconds));
  EXPECT_NEAR((*seconds)[0], 2 + 2, 1e-9);
  EXPECT_NEAR((*seconds)[3], 4, 1e-9);
  EXPECT_EQ(live(1)[0], 16384);
}

TEST_F(CostsTest, ComputationWaitsForNothingInATimeline) {
  const Timeline timeline(InstructionOrder(program), {9, 9, 2, 3, 9, 9, 9, 9, 9});
  EXPECT_EQ(timeline.beginOf(2), 0);
  EXPECT_EQ(timeline.beginOf(3), 2);
  EXPECT_EQ(timeline.beginOf(9), 5);
  EXPECT_EQ(timeline.lastBeginningBy(4), 3u);
  EXPECT_EQ(timeline.firstBeginningAt(3), 4u);
}

} // namespace
} // namespace ft::compiler
