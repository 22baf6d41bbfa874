#include "runtime/plan/rank_share.h"

#include "gtest/gtest.h"
#include "runtime/plan/testing/plan_parts.h"

namespace ft {
namespace {

using namespace plan_parts;

// A plan that has nothing but a unit of 3000 elements, and its slice and its whole in fp32: costs need no
// more. Over 2 ranks a slice has 2048 elements.
class RankShareTest : public testing::Test {
 protected:
  RankShareTest() {
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

TEST_F(RankShareTest, AKernelOverSlicesHasTheShareOfASlice) {
  EXPECT_DOUBLE_EQ(Share(Whole(0)), 2048.0 / 3000);
  EXPECT_DOUBLE_EQ(Share(Own(1)), 2048.0 / 3000);
  EXPECT_EQ(Share(Whole(1)), 1);
  EXPECT_EQ(Share(At(0, proto::F32, {16})), 1);  // a parameter, say: every rank computes all of it
  EXPECT_EQ(Share(proto::Operand()), 1);
  mesh_.shard = 1;  // padding is computed, too
  EXPECT_DOUBLE_EQ(Share(Whole(0)), 3072.0 / 3000);
}

TEST_F(RankShareTest, ATransferMovesItsWholeBuffers) {
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::ALL_GATHER, Whole(0), Whole(1))), 16384u);
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::ALL_GATHER, Own(1), Whole(1))), 16384u);
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::REDUCE_SCATTER, Whole(1), Own(1))), 16384u);
  EXPECT_EQ(TransferBytes(plan_, mesh_, Transfer(proto::COPY, Whole(0), Whole(0))), 8192u);
  proto::Instruction bucket = Transfer(proto::ALL_GATHER, Whole(0), Whole(1));
  *bucket.add_in() = Whole(0);
  *bucket.add_out() = Whole(1);
  EXPECT_EQ(TransferBytes(plan_, mesh_, bucket), 32768u);
}

}  // namespace
}  // namespace ft
