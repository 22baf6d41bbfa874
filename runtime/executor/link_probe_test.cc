#include "runtime/executor/link_probe.h"

#include <cstring>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/collective/create.h"
#include "runtime/collective/local/local_communicator.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

constexpr proto::Opcode kKinds[] = {proto::ALL_GATHER, proto::REDUCE_SCATTER, proto::ALL_REDUCE};

std::unique_ptr<Device> MakeDevice() {
  static const KernelRegistry kNone;
  return std::make_unique<CpuDevice>(kNone, CpuDeviceOptions{});
}

// One of `size` ranks, alone in the process: what all of them would send is made up by `answer`.
class AloneInAGroup : public Communicator {
 public:
  AloneInAGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel&) override {
    for (int r = 0; r < size_; ++r)
      std::memcpy(static_cast<char*>(parts[0].dst) + static_cast<size_t>(r) * parts[0].bytes, parts[0].src,
                  parts[0].bytes);
    return absl::OkStatus();
  }
  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel&) override {
    std::memcpy(parts[0].dst, parts[0].src, parts[0].count * SizeOf(parts[0].dtype));
    return absl::OkStatus();
  }
  absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    return ReduceScatter(parts, label);
  }
  absl::Status AllToAll(const AllToAllParts&, const CollectiveLabel&) override { return absl::OkStatus(); }
  absl::Status Broadcast(void*, size_t, int, const CollectiveLabel&) override { return absl::OkStatus(); }
  absl::Status Barrier(const CollectiveLabel&) override { return absl::OkStatus(); }
  void Abort(absl::Status) override {}
  size_t staging_bytes() const override { return 0; }

 private:
  const int rank_, size_;
};

TEST(LinkProbeTest, WhatCommunicatorsComputeIsRight) {
  for (const auto backend : {CollectiveBackend::kShm, CollectiveBackend::kGloo}) {
    for (const int ranks : {2, 3, 5}) {
      testing::TestWorld world(ranks);
      world.RunThreads([&](const Rendezvous& rendezvous) {
        CommunicatorOptions options;
        options.backend = backend;
        options.timeout = absl::Seconds(30);
        auto made = CreateCommunicators(rendezvous, 1, options);
        ASSERT_TRUE(made.ok()) << made.status();
        const auto device = MakeDevice();
        auto probe = LinkProbe::Create(*device, *(*made)[0], 3'000'000);
        ASSERT_TRUE(probe.ok()) << probe.status();
        for (const proto::Opcode opcode : kKinds) {
          for (const auto dtype :
               {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64}) {
            for (const uint64_t bytes : {0, 8, 1000, 3'000'000}) {
              const absl::Status status = (*probe)->CheckResult({opcode, dtype, bytes});
              EXPECT_TRUE(status.ok()) << opcode << " of " << Name(dtype) << ": " << status;
            }
          }
          const absl::StatusOr<double> seconds = (*probe)->Measure({opcode, DType::kF32, 4096}, 5);
          ASSERT_TRUE(seconds.ok()) << seconds.status();
          EXPECT_GT(*seconds, 0);
        }
      });
    }
  }
}

TEST(LinkProbeTest, OneRankAlone) {
  const auto communicator = CreateLocalCommunicator();
  const auto device = MakeDevice();
  auto probe = LinkProbe::Create(*device, *communicator, 64);
  ASSERT_TRUE(probe.ok());
  for (const proto::Opcode opcode : kKinds)
    EXPECT_TRUE((*probe)->CheckResult({opcode, DType::kF32, 64}).ok());
}

TEST(LinkProbeTest, WrongResultsAreSeen) {
  // Each rank's own numbers are taken for those of all: no sum, and no gather.
  for (const int ranks : {2, 3, 64, 200, 1000}) {
    AloneInAGroup communicator(0, ranks);
    const auto device = MakeDevice();
    auto probe = LinkProbe::Create(*device, communicator, 1 << 16);
    ASSERT_TRUE(probe.ok());
    for (const proto::Opcode opcode : kKinds) {
      for (const auto dtype : {DType::kF32, DType::kBF16, DType::kI64}) {
        const absl::Status status = (*probe)->CheckResult({opcode, dtype, 1 << 16});
        EXPECT_TRUE(absl::IsDataLoss(status)) << ranks << " ranks, " << opcode << ": " << status;
        EXPECT_NE(status.message().find("a wrong result: element "), std::string::npos) << status;
      }
    }
  }
}

TEST(LinkProbeTest, SlicesAreOfWholeElements) {
  AloneInAGroup communicator(1, 3);
  const auto device = MakeDevice();
  const auto probe = *LinkProbe::Create(*device, communicator, 100);
  EXPECT_EQ(probe->WholeBytes({proto::ALL_GATHER, DType::kF32, 100}), 96u);
  EXPECT_EQ(probe->WholeBytes({proto::REDUCE_SCATTER, DType::kBF16, 100}), 96u);
  EXPECT_EQ(probe->WholeBytes({proto::ALL_REDUCE, DType::kF32, 102}), 100u);
  EXPECT_EQ(probe->WholeBytes({proto::ALL_GATHER, DType::kI64, 0}), 24u);
}

}  // namespace
}  // namespace ft
