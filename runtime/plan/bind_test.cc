#include "runtime/plan/bind.h"

#include <ctime>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

TEST(SliceElementsTest, IsBlocksForEveryRank) {
  EXPECT_EQ(SliceElements(6144, 1024, 1), 6144u);
  EXPECT_EQ(SliceElements(6144, 1024, 2), 3072u);
  EXPECT_EQ(SliceElements(6144, 1024, 4), 2048u);
  EXPECT_EQ(SliceElements(6144, 1024, 6), 1024u);
  EXPECT_EQ(SliceElements(6144, 1024, 7), 1024u);
  EXPECT_EQ(SliceElements(6144, 1024, 1000), 1024u);
}

TEST(MeshForTest, FollowsWhatThePlanShards) {
  EXPECT_EQ(*MeshFor(TinyPlan({.shard = true}), 4), (Mesh{1, 4}));
  EXPECT_EQ(*MeshFor(TinyPlan({.shard = false}), 4), (Mesh{4, 1}));
  EXPECT_FALSE(MeshFor(TinyPlan(), 0).ok());
}

TEST(BindPlanTest, SizesFollowTheMesh) {
  const proto::Plan plan = TinyPlan();
  for (int ranks : {1, 2, 3, 4, 5, 64}) {
    const auto bound = BindPlan(plan, {1, ranks}, DeviceClass::kCpu);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const uint64_t slice = SliceElements(6144, 1024, ranks);
    EXPECT_EQ(bound->slices[0], slice);
    EXPECT_EQ(bound->sizes[BufferIndex(plan, "parameters")], slice * 4);
    EXPECT_EQ(bound->sizes[BufferIndex(plan, "gathered")], slice * 4 * ranks);
    EXPECT_EQ(bound->sizes[BufferIndex(plan, "rng")], 24u);
  }
}

// The promise of an arena: what lives at the same time shares no byte.
class LiveBuffersTest : public testing::TestWithParam<DeviceClass> {};
INSTANTIATE_TEST_SUITE_P(Devices, LiveBuffersTest, testing::ValuesIn(kDeviceClasses),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(LiveBuffersTest, AreApart) {
  for (const bool shard : {false, true}) {
    const proto::Plan plan = TinyPlan({.shard = shard});
    const auto bound = BindPlan(plan, *MeshFor(plan, 3), GetParam());
    ASSERT_TRUE(bound.ok());
    for (int a = 0; a < plan.buffers_size(); ++a) {
      EXPECT_EQ(bound->offsets[a] % 256, 0u);
      EXPECT_LE(bound->offsets[a] + bound->sizes[a], bound->arena_bytes());
      for (int b = 0; b < a; ++b) {
        const proto::Buffer &x = plan.buffers(a), &y = plan.buffers(b);
        const bool together = x.persistent() || y.persistent() ||
                              (x.program() == y.program() && x.first() <= y.last() && y.first() <= x.last());
        const bool apart = bound->offsets[a] + bound->sizes[a] <= bound->offsets[b] ||
                           bound->offsets[b] + bound->sizes[b] <= bound->offsets[a];
        const bool empty = bound->sizes[a] == 0 || bound->sizes[b] == 0;
        EXPECT_TRUE(!together || apart || empty) << x.name() << " and " << y.name();
      }
    }
    EXPECT_LE(bound->device.max_live_bytes, bound->arena_bytes());
    EXPECT_EQ(bound->device.peak_program, 1u);
    EXPECT_EQ(bound->host_arena_bytes(), 0u);
  }
}

// Two products, one after the other; the first one's result is the second one's operand.
proto::Plan TwoProducts() {
  proto::Plan plan = TinyPlan();
  for (proto::Buffer& buffer : *plan.mutable_buffers()) buffer.clear_cuda_bytes();
  proto::Program* program = plan.add_programs();
  program->set_name("products");
  const auto add = [&](const char* name, proto::MemoryClass kind, uint64_t bytes, uint32_t first,
                       uint32_t last) {
    proto::Buffer* buffer = plan.add_buffers();
    buffer->set_name(name);
    buffer->set_class_(kind);
    buffer->mutable_size()->set_value(bytes);
    buffer->set_program(2);
    buffer->set_first(first);
    buffer->set_last(last);
    return static_cast<uint32_t>(plan.buffers_size() - 1);
  };
  const uint32_t x = add("x0", proto::ACTIVATIONS, 4096, 0, 1), y = add("x1", proto::ACTIVATIONS, 4096, 1, 2);
  plan_parts::Kernel(program, "fill", {}, {plan_parts::Whole(x)});
  for (const uint32_t now : {1u, 2u}) {
    const uint32_t scratch = add("product", proto::WORKSPACE, 0, now, now);
    plan.mutable_buffers(static_cast<int>(scratch))->set_cuda_bytes(cuda_workspace::Matmul());
    *plan_parts::Kernel(program, "matmul", {plan_parts::Whole(now == 1 ? x : y)}, {plan_parts::Whole(y)})
         ->mutable_workspace() = plan_parts::Whole(scratch);
  }
  return plan;
}

TEST(BindPlanTest, ScratchIsThatOfTheDevice) {
  const proto::Plan plan = TwoProducts();
  ASSERT_EQ(VerifyPlan(plan), absl::OkStatus());
  const BoundPlan cpu = *BindPlan(plan, {1, 2}, DeviceClass::kCpu);
  const BoundPlan cuda = *BindPlan(plan, {1, 2}, DeviceClass::kCuda);
  EXPECT_EQ(cuda.device_class, DeviceClass::kCuda);
  const uint64_t scratch = cuda_workspace::Matmul();
  ASSERT_EQ(scratch, uint64_t{32} << 20);
  // Both products use the same bytes; the CPU's tiny_plan has its peak elsewhere, in its training step.
  EXPECT_EQ(cuda.device.max_live_bytes, cuda.device.persistent_bytes + 2 * 4096 + scratch);
  EXPECT_EQ(cuda.arena_bytes(), cuda.device.max_live_bytes);
  EXPECT_EQ(cuda.device.peak_program, 2u);
  EXPECT_EQ(cuda.device.peak_instruction, 1u);
  EXPECT_EQ(cuda.device.persistent_bytes, cpu.device.persistent_bytes);
  EXPECT_EQ(cpu.arena_bytes(), BindPlan(TinyPlan(), {1, 2}, DeviceClass::kCpu)->arena_bytes());
  EXPECT_EQ(cpu.device.peak_program, 1u);
  EXPECT_EQ(cpu.sizes.back(), 0u);
  EXPECT_EQ(cuda.sizes.back(), scratch);
  for (int i = 0; i < plan.buffers_size(); ++i) {
    if (!plan.buffers(i).has_cuda_bytes()) {
      EXPECT_EQ(cpu.sizes[i], cuda.sizes[i]) << plan.buffers(i).name();
    }
  }
}

// Scratch of one device only, in either direction.
TEST(BindPlanTest, NoScratchIsLegal) {
  proto::Plan plan = TwoProducts();
  const BoundPlan cpu = *BindPlan(plan, {1, 1}, DeviceClass::kCpu);
  for (proto::Buffer& buffer : *plan.mutable_buffers()) {
    if (buffer.name() != "product") continue;
    buffer.mutable_size()->set_value(buffer.cuda_bytes());
    buffer.set_cuda_bytes(0);
  }
  ASSERT_EQ(VerifyPlan(plan), absl::OkStatus());
  const BoundPlan cuda = *BindPlan(plan, {1, 1}, DeviceClass::kCuda);
  EXPECT_EQ(cuda.sizes.back(), 0u);
  EXPECT_LT(cuda.arena_bytes(), uint64_t{32} << 20);
  EXPECT_GT(BindPlan(plan, {1, 1}, DeviceClass::kCpu)->arena_bytes(), uint64_t{32} << 20);
  EXPECT_LT(cpu.arena_bytes(), uint64_t{32} << 20);
}

TEST(BindPlanTest, ShardsNeedAShardingPlan) {
  EXPECT_EQ(BindPlan(TinyPlan({.shard = false}), {1, 2}, DeviceClass::kCpu).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(BindPlan(TinyPlan(), {0, 1}, DeviceClass::kCpu).ok());
}

// As many buffers and instructions as a 70B model's plan has.
TEST(BindPlanTest, IsFastForLargePlans) {
  proto::Plan plan = TinyPlan();
  proto::Program* program = plan.add_programs();
  program->set_name("large");
  constexpr int kBuffers = 10'000;
  for (int i = 0; i < kBuffers; ++i) {
    proto::Buffer* buffer = plan.add_buffers();
    buffer->mutable_size()->set_value(4096 * (1 + i * 7919 % 1000));
    buffer->set_program(2);
    buffer->set_first(i);
    buffer->set_last(std::min(i + i * 31 % 40, kBuffers - 1));
    proto::Instruction* instruction = program->add_instructions();
    instruction->set_kernel("fill");
    proto::Operand* out = instruction->add_out();
    out->set_buffer_plus_one(plan.buffers_size());
    out->set_whole(true);
  }
  const std::clock_t begin = std::clock();
  ASSERT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan);
  const auto bound = BindPlan(plan, {1, 512}, DeviceClass::kCpu);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_LT(seconds, 3.0);  // of the processor: 0.3 s where nothing else runs; test machines are shared
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace ft
