#include "runtime/plan/target.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

TEST(TargetTest, ImpossibleFiguresAreNamed) {
  EXPECT_EQ(VerifyTarget(RoundTarget()), absl::OkStatus());
  const auto refused = [](auto&& spoil, const std::string& named) {
    Target target = RoundTarget();
    spoil(target);
    const absl::Status status = VerifyTarget(target);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(std::string(status.message()).find(named), std::string::npos) << status;
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, kNan, kInfinity}) {
    refused([&](Target& t) { t.mutable_f32()->set_reached(bad); }, "f32.reached");
    refused([&](Target& t) { t.set_memory_bytes_per_s(bad); }, "memory_bytes_per_s");
    refused([&](Target& t) { t.mutable_network()->set_bytes_per_s(bad); }, "network.bytes_per_s");
  }
  for (const double bad : {-1.0, kNan, kInfinity}) {
    refused([&](Target& t) { t.mutable_bf16()->set_peak(bad); }, "bf16.peak");
    refused([&](Target& t) { t.set_kernel_latency_s(bad); }, "kernel_latency_s");
    refused([&](Target& t) { t.mutable_node()->set_step_s(bad); }, "node.step_s");
    refused([&](Target& t) { t.mutable_copies()->set_latency_s(bad); }, "copies.latency_s");
  }
  refused([](Target& t) { t.mutable_bf16()->set_peak(t.bf16().reached() / 2); }, "reaches more in bf16");
  refused([](Target& t) { t.set_ranks_per_node(0); }, "ranks_per_node");
  refused([](Target& t) { t.set_ranks_per_node(1 << 30); }, "ranks_per_node");
  refused([](Target& t) { t.clear_name(); }, "a name of 0 bytes");
  refused([](Target& t) { t.set_memory_bytes(~uint64_t{0}); }, "memory_bytes");
  refused([](Target& t) { t.set_beside_bytes(~uint64_t{0}); }, "beside_bytes");
  refused([](Target& t) { t.set_communicator_bytes(uint64_t{1} << 51); }, "communicator_bytes");
}

void AddPoints(std::initializer_list<double> places, double value,
               google::protobuf::RepeatedPtrField<Target::Point>* points) {
  for (const double at : places) {
    Target::Point* point = points->Add();
    point->set_at(at);
    point->set_value(value);
  }
}

// All that a target can know.
Target FullTarget() {
  Target target = RoundTarget();
  target.mutable_products()->set_multiprocessors(132);
  target.mutable_products()->set_tile_rows(128);
  target.mutable_products()->set_tile_columns(256);
  target.mutable_products()->set_half_k(100);
  for (const uint32_t size : {64, 128}) {
    Target::Attention* rates = target.add_attention();
    rates->set_head_size(size);
    AddPoints({512, 1024}, 1e14, rates->mutable_forward());
    AddPoints({512}, 1e14, rates->mutable_backward());
  }
  AddPoints({1e3, 1e6}, 1e9, target.mutable_memory());
  for (const proto::Opcode opcode : {proto::ALL_GATHER, proto::ALL_REDUCE}) {
    Target::Collective* measured = target.add_collectives();
    measured->set_opcode(opcode);
    measured->set_nodes(2);
    measured->set_ranks_on_node(8);
    AddPoints({1e6, 1e9}, 1e10, measured->mutable_bytes_per_s());
    Target::Overlap* overlap = target.add_overlaps();
    overlap->set_opcode(opcode);
    overlap->set_kernels(0.2);
  }
  AddPoints({1e6, 1e7}, 0.5, target.mutable_node_ramp());
  AddPoints({1e6}, 0.5, target.mutable_network_ramp());
  AddPoints({1, 64}, 0.02, target.mutable_jitter());
  target.mutable_stack()->set_launch_s(1e-6);
  target.set_sustained(0.9);
  *target.add_attention() = target.attention(0);
  target.mutable_attention(2)->set_f32(true);
  target.mutable_measured()->set_ranks_on_node(2);
  target.mutable_measured()->set_threads(1);
  for (const uint64_t key : {1, 2}) {
    Target::TimedKernel* kernel = target.add_timed_kernels();
    kernel->set_key(key);
    kernel->set_seconds(1e-5);
    kernel->set_share(1);
  }
  return target;
}

TEST(TargetTest, ImpossiblePartsAreNamed) {
  EXPECT_EQ(VerifyTarget(FullTarget()), absl::OkStatus());
  const auto refused = [](auto&& spoil, const std::string& named) {
    Target target = FullTarget();
    spoil(target);
    const absl::Status status = VerifyTarget(target);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(std::string(status.message()).find(named), std::string::npos) << status;
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, kNan, 1e30}) {
    refused([&](Target& t) { t.mutable_products()->set_half_k(bad); }, "products.half_k");
    refused([&](Target& t) { t.mutable_attention(1)->mutable_forward(1)->set_value(bad); },
            "attention.128.forward at 1024");
    refused([&](Target& t) { t.mutable_memory(0)->set_value(bad); }, "memory at 1000");
    refused([&](Target& t) { t.mutable_memory(1)->set_at(bad); }, "memory");
    refused([&](Target& t) { t.mutable_collectives(1)->mutable_bytes_per_s(0)->set_value(bad); },
            "collectives.all_reduce.2x8");
    refused([&](Target& t) { t.mutable_overlaps(0)->set_kernels(bad); }, "overlap.all_gather.kernels");
    refused([&](Target& t) { t.mutable_overlaps(0)->set_transfer(bad); }, "overlap.all_gather.transfer");
    refused([&](Target& t) { t.mutable_node_ramp(0)->set_value(bad); }, "node_ramp");
    refused([&](Target& t) { t.mutable_network_ramp(0)->set_value(bad); }, "network_ramp");
    refused([&](Target& t) { t.mutable_jitter(0)->set_value(bad); }, "jitter");
    refused([&](Target& t) { t.mutable_stack()->set_launch_s(bad); }, "stack.launch_s");
    refused([&](Target& t) { t.mutable_stack()->set_logit_bytes(bad); }, "stack.logit_bytes");
    refused([&](Target& t) { t.mutable_stack()->set_reduction_bytes(bad); }, "stack.reduction_bytes");
    refused([&](Target& t) { t.set_sustained(bad); }, "sustained");
    refused([&](Target& t) { t.mutable_products()->set_half_rows(bad); }, "products.half_rows");
    refused([&](Target& t) { t.mutable_products()->set_half_columns(bad); }, "products.half_columns");
    refused([&](Target& t) { t.mutable_measured()->set_drift(bad); }, "measured.drift");
    refused([&](Target& t) { t.mutable_measured()->set_kernels(bad); }, "measured.kernels");
    refused([&](Target& t) { t.mutable_timed_kernels(1)->set_seconds(bad); },
            "kernels.timed.0000000000000002.seconds");
    refused([&](Target& t) { t.mutable_timed_kernels(1)->set_share(bad); },
            "kernels.timed.0000000000000002.share");
    refused([&](Target& t) { t.mutable_timed_kernels(1)->set_spread(bad); },
            "kernels.timed.0000000000000002.spread");
  }
  refused([](Target& t) { t.mutable_products()->set_tile_rows(0); }, "products.tile_rows");
  refused([](Target& t) { t.mutable_attention(1)->set_head_size(64); }, "head size");
  refused([](Target& t) { t.mutable_attention(0)->clear_backward(); }, "in one direction");
  refused([](Target& t) { t.mutable_attention(0)->set_f32(true); }, "head size");
  refused([](Target& t) { t.mutable_measured()->set_ranks_on_node(0); }, "measured.ranks");
  refused([](Target& t) { t.mutable_measured()->set_threads(0); }, "measured.threads");
  refused([](Target& t) { t.mutable_measured()->set_timed_threads(1); }, "measured.timed.threads");
  refused([](Target& t) { t.mutable_measured()->set_timed_ranks_on_node(1); }, "measured.timed.threads");
  refused([](Target& t) { t.mutable_timed_kernels(1)->set_key(1); }, "does not ascend");
  refused([](Target& t) { t.mutable_memory(1)->set_at(1000); }, "do not ascend");
  refused([](Target& t) { t.mutable_collectives(1)->set_opcode(proto::ALL_GATHER); }, "each group");
  refused([](Target& t) { t.mutable_collectives(0)->set_opcode(proto::COPY); }, "kind");
  refused([](Target& t) { t.mutable_collectives(0)->clear_bytes_per_s(); }, "0 points");
  refused([](Target& t) { t.mutable_overlaps(1)->set_opcode(proto::ALL_GATHER); }, "overlap");
  refused([](Target& t) { t.mutable_overlaps(1)->set_opcode(proto::KERNEL); }, "overlap");
  refused(
      [](Target& t) {
        for (int i = 0; i < 300; ++i) AddPoints({1e7 + i}, 1e9, t.mutable_memory());
      },
      "302 points of memory");
  refused(
      [](Target& t) {
        for (uint32_t i = 0; i < kMostTargetBytes / 20; ++i) *t.add_collectives() = t.collectives(0);
      },
      absl::StrCat("of ", kMostTargetBytes, " it is"));
}

TEST(TargetTest, HowItWasMeasuredInWords) {
  Target::Measured measured;
  measured.set_ranks_on_node(1);
  measured.set_threads(2);
  EXPECT_EQ(LayoutText(measured), "1 rank a host, 2 threads each");
  measured.set_ranks_on_node(2);
  measured.set_threads(1);
  measured.set_instruction_set("avx2");
  EXPECT_EQ(LayoutText(measured), "2 ranks a host, 1 thread each, avx2");
}

}  // namespace
}  // namespace ft
