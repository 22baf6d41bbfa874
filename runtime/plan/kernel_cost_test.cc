#include "runtime/plan/kernel_cost.h"

#include "gtest/gtest.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

using namespace plan_parts;

// A plan that has nothing but a unit of 3000 elements, and its slice and its whole in fp32: costs need no
// more. Over 2 ranks a slice has 2048 elements.
class KernelCostTest : public testing::Test {
 protected:
  KernelCostTest() {
    plan_.set_block_elements(1024);
    plan_.add_units()->set_elements(3000);
    for (const auto kind : {proto::SizeExpr::UNIT_SLICE, proto::SizeExpr::UNIT_FULL}) {
      proto::SizeExpr* size = plan_.add_buffers()->mutable_size();
      size->set_kind(kind);
      size->set_value(4);
    }
  }

  double Share(const proto::Operand& operand) {
    return ShareOfRank(plan_, mesh_, *Kernel(&program_, "update", {operand}, {}));
  }

  proto::Instruction Transfer(proto::Opcode opcode, const proto::Operand& in, const proto::Operand& out) {
    proto::Instruction transfer;
    transfer.set_opcode(opcode);
    transfer.set_axis(opcode == proto::COPY ? proto::AXIS_NONE : proto::AXIS_SHARD);
    *transfer.add_in() = in;
    *transfer.add_out() = out;
    return transfer;
  }

  proto::Plan plan_;
  proto::Program program_;
  Mesh mesh_{.replica = 1, .shard = 2};
};

TEST_F(KernelCostTest, AKernelOverSlicesHasTheShareOfASlice) {
  EXPECT_DOUBLE_EQ(Share(Whole(0)), 2048.0 / 3000);
  EXPECT_DOUBLE_EQ(Share(Own(1)), 2048.0 / 3000);
  EXPECT_EQ(Share(Whole(1)), 1);
  EXPECT_EQ(Share(At(0, proto::F32, {16})), 1);  // a parameter, say: every rank computes all of it
  EXPECT_EQ(Share(proto::Operand()), 1);
  mesh_.shard = 1;  // padding is computed, too
  EXPECT_DOUBLE_EQ(Share(Whole(0)), 3072.0 / 3000);
}

TEST_F(KernelCostTest, ATransferMovesItsWholeBuffers) {
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::ALL_GATHER, Whole(0), Whole(1))), 16384u);
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::ALL_GATHER, Own(1), Whole(1))), 16384u);
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::REDUCE_SCATTER, Whole(1), Own(1))), 16384u);
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::COPY, Whole(0), Whole(0))), 8192u);
  proto::Instruction bucket = Transfer(proto::ALL_GATHER, Whole(0), Whole(1));
  *bucket.add_in() = Whole(0);
  *bucket.add_out() = Whole(1);
  EXPECT_EQ(TransferBytes(plan_, mesh_, bucket), 32768u);
}

TEST_F(KernelCostTest, SecondsDependOnTheMeshAndTheTypes) {
  Target target = RoundTarget();
  target.mutable_f32()->set_reached(1000);
  target.mutable_f16()->set_reached(4000);
  target.set_kernel_latency_s(1);
  SetLink(1, 0, 8192, target.mutable_node());
  proto::Instruction* kernel = Kernel(&program_, "matmul", {At(1, proto::F32, {4})}, {});
  kernel->set_flops(4000);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *kernel, target), 1 + 4, 1e-9);
  *kernel->add_in() = At(1, proto::F16, {4});
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *kernel, target), 1 + 1, 1e-9);
  const proto::Instruction gather = Transfer(proto::ALL_GATHER, Whole(0), Whole(1));
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, gather, target), 1 + 1, 1e-9);
  mesh_.shard = 1;
  EXPECT_EQ(InstructionSeconds(plan_, mesh_, gather, target), 0);
  EXPECT_EQ(InstructionSeconds(plan_, mesh_, *Add(&program_, proto::WAIT, proto::COMPUTE, {0}), target), 0);
}

}  // namespace
}  // namespace ft
