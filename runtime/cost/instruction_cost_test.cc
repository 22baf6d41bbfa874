#include "runtime/cost/instruction_cost.h"

#include "gtest/gtest.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

using namespace plan_parts;

// A plan that has nothing but a unit of 3000 elements, and its slice and its whole in fp32: costs need no
// more. Over 2 ranks a slice has 2048 elements.
class InstructionCostTest : public testing::Test {
 protected:
  InstructionCostTest() {
    plan_.set_block_elements(1024);
    plan_.add_units()->set_elements(3000);
    for (const auto kind : {proto::SizeExpr::UNIT_SLICE, proto::SizeExpr::UNIT_FULL}) {
      proto::SizeExpr* size = plan_.add_buffers()->mutable_size();
      size->set_kind(kind);
      size->set_value(4);
    }
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

TEST_F(InstructionCostTest, SecondsDependOnTheMeshAndTheTypes) {
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
  EXPECT_EQ(InstructionSeconds(plan_, mesh_, *Add(&program_, proto::WAIT, proto::COMPUTE, {0}), target), 0);
}

TEST_F(InstructionCostTest, OverOneRankWhatIsNotInPlaceIsCopied) {
  Target target = RoundTarget();
  SetLink(2, 0, 3072, target.mutable_copies());
  target.set_memory_bytes_per_s(4096);
  mesh_.shard = 1;
  const proto::Instruction gather = Transfer(proto::ALL_GATHER, Whole(0), Whole(1));
  target.set_cuda(false);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, gather, target), 2 + 4, 1e-9)
      << "3072 padded elements of 4 bytes";
  Target::Overlap* overlap = target.add_overlaps();
  overlap->set_opcode(proto::COPY);
  overlap->set_transfer(0.5);
  EXPECT_EQ(CostOf(plan_, mesh_, gather, target).kind, TransferKind::kCopy);
  EXPECT_EQ(CostOf(plan_, mesh_, gather, target).beside_kernels, 1.5);
  target.set_cuda(true);
  EXPECT_EQ(CostOf(plan_, mesh_, gather, target).kind, TransferKind::kAllGather);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, gather, target), 2 * 12288 / 4096.0, 1e-9)
      << "read and written";
  EXPECT_EQ(InstructionSeconds(plan_, mesh_, Transfer(proto::ALL_REDUCE, Whole(1), Whole(1)), target), 0)
      << "in place";
}

// 1000 FLOP/s in 16 bits, 100 bytes a second, no latencies.
Target Plain() {
  Target target = RoundTarget();
  target.mutable_bf16()->set_reached(1000);
  target.set_memory_bytes_per_s(100);
  target.set_kernel_latency_s(0);
  return target;
}

TEST_F(InstructionCostTest, AProductHasTheRateOfItsShape) {
  Target target = Plain();
  target.mutable_products()->set_multiprocessors(4);
  target.mutable_products()->set_tile_rows(8);
  target.mutable_products()->set_tile_columns(8);
  target.mutable_products()->set_half_k(32);
  // [2, 8, 96] x [96, 24]: 2 x 3 tiles in two waves of 4, a sum over 96.
  proto::Instruction* product =
      Kernel(&program_, "matmul", {At(0, proto::BF16, {2, 8, 96})}, {At(1, proto::BF16, {2, 8, 24})});
  product->set_flops(2 * 16 * 24 * 96);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *product, target), 73728 / (1000 * 0.75 * 0.75), 1e-9);
  product->set_bytes(100'000);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *product, target), 1000, 1e-9);
  // Beside a gather that takes two of the four, six tiles are three waves of two, and each takes a tenth
  // longer.
  product->set_bytes(0);
  Target::Overlap* overlap = target.add_overlaps();
  overlap->set_opcode(proto::ALL_GATHER);
  overlap->set_kernels(0.1);
  overlap->set_multiprocessors(2);
  const InstructionCost cost = CostOf(plan_, mesh_, *product, target);
  EXPECT_NEAR(cost.beside_transfer[static_cast<size_t>(TransferKind::kAllGather)], 1.1 * 3 / 2, 1e-9);
  EXPECT_EQ(cost.beside_transfer[static_cast<size_t>(TransferKind::kAllReduce)], 1);
}

TEST_F(InstructionCostTest, AProductOf8BitsHasTheirRateAndRoundsItsOperands) {
  Target target = Plain();
  target.set_cuda(true);
  proto::Instruction* product =
      Kernel(&program_, "matmul", {At(0, proto::BF16, {16, 96}), At(0, proto::BF16, {96, 24})},
             {At(1, proto::BF16, {16, 24})});
  product->set_flops(2 * 16 * 24 * 96);
  const double before = InstructionSeconds(plan_, mesh_, *product, target);
  product->add_attributes()->set_name("scaling");
  const double rounding = (16 + 24) * 96 * 5 / 100.0;
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *product, target), before + rounding, 1e-9)
      << "no rate is known";
  target.mutable_float8()->set_reached(1800);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *product, target), before / 1.8 + rounding, 1e-9);
  product->set_bytes((16 + 24) * 96 * 4 + 100'000);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *product, target), 1000 + rounding, 1e-9);
  product->set_bytes(0);
  target.set_kernel_latency_s(1);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *product, target), before / 1.8 + rounding + 5, 1e-9);
  target.set_cuda(false);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *product, target), before + (16 + 24) * 96 * 6 / 100.0 + 1,
              1e-9);
}

TEST_F(InstructionCostTest, CpusReadAgainWhatIsSummedBesideAProduct) {
  Target target = Plain();
  proto::Instruction* kernel =
      Kernel(&program_, "matmul", {At(0, proto::BF16, {16, 24}), At(0, proto::BF16, {16, 96})},
             {At(1, proto::BF16, {24, 96}), At(1, proto::BF16, {96})});
  kernel->set_flops(2 * 24 * 96 * 16);
  const double product = InstructionSeconds(plan_, mesh_, *kernel, target);
  kernel->set_kernel("matmul_bias_grad");
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *kernel, target) - product, 16 * 96 * 2 / 100.0, 1e-9);
  proto::Attribute* of_a = kernel->add_attributes();
  of_a->set_name("of_a");
  of_a->set_i(1);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *kernel, target) - product, 16 * 24 * 2 / 100.0, 1e-9);
  target.set_cuda(true);
  const double on_gpu = InstructionSeconds(plan_, mesh_, *kernel, target);
  kernel->set_kernel("matmul");
  EXPECT_EQ(on_gpu, InstructionSeconds(plan_, mesh_, *kernel, target));
}

TEST_F(InstructionCostTest, ExpertsAreAProductEach) {
  Target target = Plain();
  target.mutable_products()->set_multiprocessors(4);
  target.mutable_products()->set_tile_rows(8);
  target.mutable_products()->set_tile_columns(8);
  target.mutable_products()->set_half_k(32);
  target.mutable_products()->set_half_rows(4);
  // Three experts with four rows each: a half of a tile, 3 x 3 tiles in three waves of 4, a sum over 96.
  const auto ends = At(0, proto::I32, {3});
  proto::Instruction* made =
      Kernel(&program_, "grouped_dot", {At(0, proto::BF16, {12, 96}), At(1, proto::BF16, {3, 96, 24}), ends},
             {At(1, proto::BF16, {12, 24})});
  made->set_flops(2 * 12 * 96 * 24);
  EXPECT_TRUE(IsProduct(*made));
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *made, target), 55296 / (1000 * 4.5 / 12 * 0.75 * 0.5), 1e-9);
  // Their gradients, each [96, 24] and a sum over four: 3 x 12 x 3 tiles in full waves.
  proto::Instruction* grad = Kernel(&program_, "grouped_dot_grad",
                                    {At(0, proto::BF16, {12, 96}), At(1, proto::BF16, {12, 24}), ends, {}},
                                    {At(1, proto::BF16, {3, 96, 24})});
  grad->set_flops(2 * 12 * 96 * 24);
  EXPECT_TRUE(IsProduct(*grad));
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *grad, target), 55296 / (1000 * 4.0 / 36 * 0.96), 1e-9);
}

TEST_F(InstructionCostTest, AttentionIsTheResultsOrItsGradients) {
  Target target = Plain();
  Target::Attention* rates = target.add_attention();
  rates->set_head_size(16);
  Target::Point* forward = rates->add_forward();
  forward->set_at(128);
  forward->set_value(500);
  Target::Point* backward = rates->add_backward();
  backward->set_at(128);
  backward->set_value(250);
  proto::Instruction* made = Kernel(&program_, "qkv_attention", {At(0, proto::BF16, {1, 128, 96})},
                                    {At(1, proto::BF16, {1, 128, 32})});
  made->set_flops(2000);
  proto::Attribute* heads = made->add_attributes();
  heads->set_name("heads");
  heads->set_i(2);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *made, target), 4, 1e-9);
  proto::Instruction* grad = Kernel(&program_, "attention_grad", {At(0, proto::BF16, {1, 128, 32})}, {});
  *grad->add_attributes() = *heads;
  grad->set_flops(2000);
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *grad, target), 8, 1e-9);
}

TEST_F(InstructionCostTest, TheHeadIsAProductAndWhatGoesOverItsLogits) {
  Target target = Plain();
  target.mutable_stack()->set_logit_bytes(10);
  proto::Instruction* head = Kernel(&program_, "linear_cross_entropy_grad",
                                    {At(0, proto::F32, {}), At(0, proto::BF16, {2, 4, 16}),
                                     At(1, proto::BF16, {50, 16}), At(0, proto::I32, {2, 4})},
                                    {});
  head->set_flops(6000);
  // 8 rows x 50 logits x 10 bytes at 100 a second.
  EXPECT_NEAR(InstructionSeconds(plan_, mesh_, *head, target), 6 + 40, 1e-9);
}

TEST_F(InstructionCostTest, StacksMoveMoreBytes) {
  Target target = Plain();
  target.mutable_stack()->set_elementwise_bytes(3);
  target.mutable_stack()->set_update_bytes(2);
  target.mutable_stack()->set_reduction_bytes(5);
  const auto seconds = [&](const char* name) {
    proto::Instruction* kernel = Kernel(&program_, name, {At(0, proto::BF16, {4})}, {});
    kernel->set_bytes(1000);
    return InstructionSeconds(plan_, mesh_, *kernel, target);
  };
  EXPECT_NEAR(seconds("cluster"), 30, 1e-9);
  EXPECT_NEAR(seconds("update"), 20, 1e-9);
  EXPECT_NEAR(seconds("sum_squares"), 50, 1e-9);
  EXPECT_NEAR(seconds("embedding"), 10, 1e-9);
}

}  // namespace
}  // namespace ft
