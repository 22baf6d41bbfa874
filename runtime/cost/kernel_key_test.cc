#include "runtime/cost/kernel_key.h"

#include "gtest/gtest.h"
#include "runtime/cost/instruction_cost.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

using namespace plan_parts;

class KernelKeyTest : public testing::Test {
 protected:
  KernelKeyTest() {
    plan_.set_block_elements(1024);
    plan_.add_units()->set_elements(4096);
    for (const auto kind : {proto::SizeExpr::UNIT_SLICE, proto::SizeExpr::UNIT_FULL}) {
      proto::SizeExpr* size = plan_.add_buffers()->mutable_size();
      size->set_kind(kind);
      size->set_value(4);
    }
  }

  proto::Instruction Product() {
    proto::Instruction product =
        *Kernel(&program_, "matmul", {At(1, proto::F32, {4, 8}), At(1, proto::F32, {8, 2})},
                {At(1, proto::F32, {4, 2})});
    Int(&product, "transpose_a", 0);
    return product;
  }
  uint64_t Key(const proto::Instruction& kernel) { return KernelKey(plan_, kernel); }

  proto::Plan plan_;
  proto::Program program_;
};

TEST_F(KernelKeyTest, WhatDecidesTheTimeCounts) {
  const proto::Instruction product = Product();
  const auto changed = [&](auto change) {
    proto::Instruction other = product;
    change(other);
    return Key(other) != Key(product);
  };
  EXPECT_TRUE(changed([](auto& i) { i.set_kernel("matmul_gelu"); }));
  EXPECT_TRUE(changed([](auto& i) { i.mutable_in(0)->set_shape(0, 5); }));
  EXPECT_TRUE(changed([](auto& i) { i.mutable_in(1)->set_dtype(proto::BF16); }));
  EXPECT_TRUE(changed([](auto& i) { i.mutable_attributes(0)->set_i(1); }));
  EXPECT_TRUE(changed([](auto& i) { i.set_stream(proto::HOST_COMPUTE); }));
  EXPECT_TRUE(changed([](auto& i) { i.add_in(); }));
  // An operand is not moved to the results, nor an extent to the next operand.
  EXPECT_TRUE(changed([](auto& i) {
    *i.mutable_out()->Add() = i.in(1);
    i.mutable_in()->RemoveLast();
  }));
}

TEST_F(KernelKeyTest, WhereItsNumbersAreDoesNot) {
  const proto::Instruction product = Product();
  const auto same = [&](auto change) {
    proto::Instruction other = product;
    change(other);
    return Key(other) == Key(product);
  };
  EXPECT_TRUE(same([](auto& i) { i.mutable_in(0)->set_offset(512); }));
  EXPECT_TRUE(same([](auto& i) { i.set_layer("h.1"); }));
  EXPECT_TRUE(same([](auto& i) { i.set_phase("backward"); }));
  EXPECT_TRUE(same([](auto& i) { i.add_after(3); }));
  proto::Instruction first = product, second = product;
  Int(&first, "stream", 1);
  Int(&second, "stream", 2);
  EXPECT_EQ(Key(first), Key(second)) << "numbers of random streams";
}

TEST_F(KernelKeyTest, BodiesCountAndTheirCodeDoesNot) {
  proto::Instruction cluster =
      *Kernel(&program_, "cluster", {At(1, proto::F32, {4})}, {At(1, proto::F32, {4})});
  plan_.add_clusters()->set_rows(4);
  plan_.add_clusters()->set_rows(4);
  plan_.mutable_clusters(0)->add_ops()->set_name("exp");
  plan_.mutable_clusters(1)->add_ops()->set_name("tanh");
  cluster.set_cluster_plus_one(1);
  const uint64_t exp = Key(cluster);
  plan_.mutable_clusters(0)->add_codes()->set_code("code");
  EXPECT_EQ(Key(cluster), exp);
  cluster.set_cluster_plus_one(2);
  EXPECT_NE(Key(cluster), exp);
  cluster.set_cluster_plus_one(9);  // a schedule without bodies
  EXPECT_NE(Key(cluster), exp);
}

TEST_F(KernelKeyTest, ATimedKernelCountsBeforeTheFormAndFallsToRanksByShare) {
  Target target = RoundTarget();
  target.set_kernel_latency_s(1);
  proto::Instruction update = *Kernel(&program_, "update", {Whole(0)}, {});
  update.set_bytes(uint64_t{1} << 40);
  for (const proto::Instruction& kernel : {Product(), update}) {
    Target::TimedKernel* timed = target.add_timed_kernels();
    timed->set_key(Key(kernel));
    timed->set_seconds(9);
    timed->set_share(1);
  }
  if (target.timed_kernels(0).key() > target.timed_kernels(1).key())
    target.mutable_timed_kernels()->SwapElements(0, 1);
  EXPECT_DOUBLE_EQ(InstructionSeconds(plan_, {.replica = 1, .shard = 2}, Product(), target), 9);
  EXPECT_DOUBLE_EQ(InstructionSeconds(plan_, {.replica = 1, .shard = 1}, update, target), 9);
  EXPECT_DOUBLE_EQ(InstructionSeconds(plan_, {.replica = 1, .shard = 4}, update, target), 1 + 8.0 / 4);
  // Of two ranks the half was timed.
  for (Target::TimedKernel& timed : *target.mutable_timed_kernels()) timed.set_share(0.5);
  EXPECT_DOUBLE_EQ(InstructionSeconds(plan_, {.replica = 1, .shard = 4}, update, target), 1 + 8.0 / 2);
  proto::Instruction other = Product();
  other.mutable_out(0)->set_shape(0, 3);
  EXPECT_EQ(FindTimed(target, plan_, other), nullptr);
}

}  // namespace
}  // namespace ft
