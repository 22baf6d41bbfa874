// Sums of ranks on GPUs have the bits of sums of ranks on CPUs. Needs a launcher around it, so it runs only
// where it is asked for:
//   ftrun --nproc-per-node=2 --standalone PROGRAM --gtest_also_run_disabled_tests
//   --gtest_filter='*DISABLED_RanksNccl*'
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/create.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "runtime/collective/rendezvous/rendezvous.h"
#include "runtime/collective/tree_sum.h"
#include "test/conformance/gpu_collectives.h"
#include "test/conformance/open_nccl.h"

namespace ft::conformance {
namespace {

// All ranks of the launcher around this program.
class DISABLED_RanksNccl : public testing::TestWithParam<DType> {
 protected:
  static constexpr uint64_t kHalf = uint64_t{16} << 20;
  static constexpr size_t kCount = 70001;  // of a slice: no whole packs, several chunks

  void SetUp() override {
    const auto environment = LaunchEnvironmentOfProcess();
    ASSERT_TRUE(environment.ok()) << environment.status();
    if (environment->world_size < 2) GTEST_SKIP() << "skipped: one rank; start several with ftrun";
    auto api = OpenNccl();
    if (absl::IsFailedPrecondition(api.status()))
      GTEST_SKIP() << "skipped: no NCCL: " << api.status().message();
    ASSERT_TRUE(api.ok()) << api.status();
    auto gpu = OnGpu::Open(environment->local_rank, 2 * kHalf);
    if (!gpu.ok()) GTEST_SKIP() << "skipped: no CUDA device: " << gpu.status().message();
    gpu_ = std::make_unique<OnGpu>(*std::move(gpu));
    auto rendezvous = Rendezvous::Join(
        *environment, {.fingerprint = testing::UnitTest::GetInstance()->current_test_info()->name(),
                       .label = "",
                       .instruction_set = "",
                       .timeout = kPatience});
    ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
    rendezvous_ = *std::move(rendezvous);
    CommunicatorOptions options;
    options.timeout = kPatience;
    options.cuda = gpu_->Side(*std::move(api));
    options.deterministic = true;
    auto made = CreateCommunicators(*rendezvous_, 1, options);
    ASSERT_TRUE(made.ok()) << made.status();
    comm_ = std::move((*made)[0]);
    comm_->AttachStream(gpu_->stream().native());
    ASSERT_TRUE(comm_->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes()).ok());
  }
  void TearDown() override {
    if (comm_ != nullptr) comm_->Detach();
    comm_ = nullptr;
    rendezvous_ = nullptr;
  }

  // Each rank's numbers, and the sum that ranks on CPUs make of them.
  Bytes Given(int rank, uint32_t seed) const {
    return Numbers(seed * 1000 + static_cast<uint32_t>(rank), kCount * static_cast<size_t>(comm_->size()),
                   GetParam());
  }
  Bytes Sum(uint32_t seed) const {
    std::vector<Bytes> all;
    std::vector<const void*> parts;
    for (int rank = 0; rank < comm_->size(); ++rank) all.push_back(Given(rank, seed));
    for (const Bytes& one : all) parts.push_back(one.data());
    Bytes sum(all[0].size());
    TreeSum(parts, kCount * static_cast<size_t>(comm_->size()), GetParam(), sum.data());
    return sum;
  }

  // A slice of the sum, all of the sum, and the slices gathered again.
  Collectives All() {
    return Collectives([this]() -> absl::Status {
      const size_t slice = kCount * SizeOf(GetParam()), whole = slice * static_cast<size_t>(comm_->size());
      absl::Status status =
          comm_->ReduceScatter(gpu_->at(0), gpu_->at(kHalf), kCount, GetParam(), {"scatter", 1});
      const ReducePart part{gpu_->at(0), gpu_->at(kHalf + Aligned(slice)), whole / SizeOf(GetParam()),
                            GetParam()};
      if (status.ok()) status = comm_->AllReduce(absl::MakeConstSpan(&part, 1), {"all", 2});
      if (status.ok())
        status = comm_->AllGather(gpu_->at(kHalf), gpu_->at(kHalf + Aligned(slice) + Aligned(whole)), slice,
                                  {"gather", 3});
      return status;
    });
  }
  static uint64_t Aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

  void ExpectSums(uint32_t seed) {
    const Bytes sum = Sum(seed);
    const size_t slice = kCount * SizeOf(GetParam());
    const Bytes own(sum.begin() + static_cast<ptrdiff_t>(slice * static_cast<size_t>(comm_->rank())),
                    sum.begin() + static_cast<ptrdiff_t>(slice * static_cast<size_t>(comm_->rank() + 1)));
    EXPECT_TRUE(gpu_->Read(kHalf, slice) == own) << "reduce_scatter";
    EXPECT_TRUE(gpu_->Read(kHalf + Aligned(slice), sum.size()) == sum) << "all_reduce";
    EXPECT_TRUE(gpu_->Read(kHalf + Aligned(slice) + Aligned(sum.size()), sum.size()) == sum) << "all_gather";
  }

  std::unique_ptr<OnGpu> gpu_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<Communicator> comm_;
};

TEST_P(DISABLED_RanksNccl, SumsHaveTheBitsOfRanksOnCpus) {
  ASSERT_LE(3 * (kCount * 4 * static_cast<size_t>(comm_->size()) + 256), kHalf)
      << "too many ranks for this test's memory";
  Collectives all = All();
  gpu_->Write(0, Given(comm_->rank(), 1));
  const absl::Status status = all.Once(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(status.ok()) << status;
  ExpectSums(1);
  auto recording = all.Record(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(recording.ok()) << recording.status();
  for (uint32_t replay = 2; replay < 5; ++replay) {
    gpu_->Write(0, Given(comm_->rank(), replay));
    gpu_->Write(kHalf, Bytes(kHalf, std::byte{0xFF}));
    (*recording)->Start();
    gpu_->stream().Synchronize();
    ASSERT_TRUE(gpu_->device().status().ok()) << gpu_->device().status();
    ExpectSums(replay);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, DISABLED_RanksNccl,
                         testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace ft::conformance
