#include "runtime/cost/memory_traffic.h"

#include "gtest/gtest.h"
#include "runtime/plan/testing/plan_parts.h"

namespace ft {
namespace {

using namespace plan_parts;

// Buffers of 64 bytes, and a unit's slice and its whole: 1024 and 2048 elements over 2 ranks.
class MemoryTrafficTest : public testing::Test {
 protected:
  MemoryTrafficTest() {
    plan_.set_block_elements(1024);
    plan_.add_units()->set_elements(2000);
    for (int i = 0; i < 6; ++i) plan_.add_buffers()->mutable_size()->set_value(64);
    for (const auto kind : {proto::SizeExpr::UNIT_SLICE, proto::SizeExpr::UNIT_FULL}) {
      proto::SizeExpr* size = plan_.add_buffers()->mutable_size();
      size->set_kind(kind);
      size->set_value(4);
    }
  }

  // Sixteen elements, or some of them.
  static proto::Operand Of(uint32_t buffer, uint64_t elements = 16, uint64_t first = 0) {
    return At(buffer, proto::F32, {elements}, 4 * first);
  }

  // It says that it moves its operands once each.
  proto::Instruction* Run(const std::string& kernel, std::initializer_list<proto::Operand> in,
                          std::initializer_list<proto::Operand> out) {
    proto::Instruction* instruction = Kernel(&program_, kernel, in, out);
    uint64_t bytes = 0;
    for (const auto* operands : {&instruction->in(), &instruction->out()})
      for (const proto::Operand& operand : *operands) bytes += 4 * operand.shape(0);
    instruction->set_bytes(bytes);
    return instruction;
  }

  void Expect(uint64_t ops, uint64_t between, uint64_t floor) {
    const MemoryTraffic traffic = MemoryTrafficOf(plan_, program_, mesh_);
    EXPECT_EQ(traffic.ops, ops);
    EXPECT_EQ(traffic.between, between);
    EXPECT_EQ(traffic.floor, floor);
  }

  proto::Plan plan_;
  proto::Program program_;
  Mesh mesh_{.replica = 1, .shard = 2};
};

TEST_F(MemoryTrafficTest, OpsAreTheFloor) {
  Run("matmul", {Of(0), Of(1)}, {Of(2)});
  Run("dot", {Of(2), Of(2)}, {Of(3)});
  Expect(6 * 64, 0, 6 * 64);
}

TEST_F(MemoryTrafficTest, OneClusterBetweenTwoOpsIsTheFloor) {
  Run("matmul", {Of(0), Of(1)}, {Of(2)});
  Run("cluster", {Of(2)}, {Of(3)});
  Run("attention", {Of(3)}, {Of(4)});
  Expect(5 * 64, 2 * 64, 7 * 64);
}

TEST_F(MemoryTrafficTest, WhatGoesFromClusterToClusterIsAbove) {
  Run("matmul", {Of(0), Of(1)}, {Of(2)});
  Run("cluster", {Of(2)}, {Of(3)});
  Run("cluster", {Of(3)}, {Of(4)});
  Run("matmul", {Of(4), Of(1)}, {Of(5)});
  // The second reads for the second time what the product has written.
  Run("cluster", {Of(2), Of(5)}, {Of(0)});
  Expect(6 * 64, 7 * 64, (6 + 3) * 64);
}

TEST_F(MemoryTrafficTest, WhatAnOpReadsAsWellIsReadByItAlone) {
  Run("matmul", {Of(0), Of(1)}, {Of(2)});
  Run("matmul", {Of(2), Of(1)}, {Of(3)});
  Run("cluster", {Of(2)}, {Of(4)});
  Expect(6 * 64, 2 * 64, 6 * 64);
}

TEST_F(MemoryTrafficTest, WhatWasThereBeforeIsReadOnce) {
  Run("cluster", {Of(0)}, {Of(1)});
  Run("cluster", {Of(0)}, {Of(2)});
  Expect(0, 4 * 64, 64);
}

TEST_F(MemoryTrafficTest, WhatIsKeptIsWrittenOnce) {
  plan_.mutable_buffers(2)->set_persistent(true);
  Run("cluster", {Of(0)}, {Of(1)});
  Run("cluster", {Of(1)}, {Of(2, 8)});
  Run("cluster", {Of(1)}, {Of(2, 8, 8)});
  Expect(0, 4 * 64 + 64, 2 * 64);
  // By an op, which counts it, too.
  Run("update", {Of(1)}, {Of(2)});
  Expect(2 * 64, 5 * 64, 4 * 64);
}

TEST_F(MemoryTrafficTest, PartsHaveStoriesOfTheirOwn) {
  Run("matmul", {Of(0), Of(1)}, {Of(2)});
  Run("cluster", {Of(2, 4)}, {Of(3, 4)});         // a quarter is turned
  Run("attention", {Of(3, 4), Of(2, 8, 8)}, {});  // half goes as it is, a quarter nowhere
  Expect(3 * 64 + 16 + 32, 2 * 16, 3 * 64 + 16 + 32 + 2 * 16);
  // Written again, by parts: the two quarters in front of the half are of others now.
  Run("cluster", {Of(5)}, {Of(2, 8)});
  Run("matmul", {Of(2)}, {Of(4)});
  Expect(3 * 64 + 16 + 32 + 128, 2 * 16 + 64 + 32, 3 * 64 + 16 + 32 + 2 * 16 + 128 + 64 + 32);
}

TEST_F(MemoryTrafficTest, TransfersMoveWhatThisRankHas) {
  proto::Instruction* gather = Add(&program_, proto::ALL_GATHER, proto::GATHER, {});
  *gather->add_in() = Whole(6), *gather->add_out() = Whole(7);
  Expect(4096 + 8192, 0, 4096 + 8192);
  proto::Instruction* reduce = Add(&program_, proto::ALL_REDUCE, proto::REDUCE, {});
  *reduce->add_in() = Whole(7);
  Expect(4096 + 3 * 8192, 0, 4096 + 3 * 8192);
  plan_.mutable_buffers(6)->set_space(proto::HOST);
  Expect(3 * 8192, 0, 3 * 8192);
}

TEST_F(MemoryTrafficTest, WaitsAndReleasesMoveNothing) {
  Add(&program_, proto::WAIT, proto::COMPUTE, {});
  *Add(&program_, proto::RELEASE, proto::COMPUTE, {})->add_in() = Whole(7);
  Expect(0, 0, 0);
}

TEST_F(MemoryTrafficTest, KernelsSayWhatTheyTouch) {
  Run("embedding", {Of(0), Of(1, 4)}, {Of(2, 4)})->set_bytes(3 * 16);
  Expect(48, 0, 48);
  Run("update", {Of(0)}, {Of(0)})->set_stream(proto::HOST_COMPUTE);
  Expect(48, 0, 48);
}

}  // namespace
}  // namespace ft
