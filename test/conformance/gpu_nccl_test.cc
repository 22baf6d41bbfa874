// Our side of NCCL with the library itself, on the GPU of this machine: one rank does all that several do. A
// run of one rank loads no NCCL, so this runs only where it is asked for:
//   --gtest_also_run_disabled_tests --gtest_filter='DISABLED_OneRankNccl*'
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/collective/nccl/nccl_communicator.h"
#include "runtime/collective/nccl/nccl_handle.h"
#include "runtime/collective/nccl/nccl_watchdog.h"
#include "runtime/collective/nccl/windows.h"
#include "test/conformance/gpu_collectives.h"
#include "test/conformance/open_nccl.h"

namespace ft::conformance {
namespace {

// One rank alone, with all that NCCL does for several.
class DISABLED_OneRankNccl : public testing::Test {
 protected:
  static constexpr uint64_t kHalf = uint64_t{8} << 20;  // of the memory: sources, then results
  static constexpr size_t kCount = 100003;

  void SetUp() override {
    auto api = OpenNccl();
    if (absl::IsFailedPrecondition(api.status()))
      GTEST_SKIP() << "skipped: no NCCL: " << api.status().message();
    ASSERT_TRUE(api.ok()) << api.status();
    api_ = *std::move(api);
    auto gpu = OnGpu::Open(0, 2 * kHalf);
    if (!gpu.ok()) GTEST_SKIP() << "skipped: no CUDA device: " << gpu.status().message();
    gpu_ = std::make_unique<OnGpu>(*std::move(gpu));
    int version = 0;
    ASSERT_EQ(api_->GetVersion(&version), nccl::kSuccess);
    std::cout << "NCCL " << nccl::VersionText(version) << "\n";
    auto world = Init();
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
  }

  absl::StatusOr<std::unique_ptr<nccl::NcclHandle>> Init() {
    nccl::UniqueId id;
    if (api_->GetUniqueId(&id) != nccl::kSuccess) return absl::UnavailableError("ncclGetUniqueId failed");
    return nccl::NcclHandle::Init(api_, 1, id, 0, {.deadline = absl::Now() + kPatience, .interrupted = {}});
  }

  std::unique_ptr<Communicator> Split(bool windows = false,
                                      nccl::CtaPolicy policy = nccl::CtaPolicy::kLibrarys) {
    auto handle = world_->Split(/*color=*/0, /*key=*/0,
                                {.deadline = absl::Now() + kPatience, .interrupted = {}}, policy);
    EXPECT_TRUE(handle.ok()) << handle.status();
    if (!handle.ok() || *handle == nullptr) return nullptr;
    nccl::NcclCommunicatorOptions options;
    options.size = 1;
    options.windows = windows;
    options.staging_bytes = nccl::NcclStagingBytes(false);
    options.cuda = gpu_->Side(api_);
    options.stall = {.key = "one rank", .members = {"rank 0"}, .timeout = kPatience};
    options.watchdog = std::make_shared<nccl::NcclWatchdog>(absl::Milliseconds(50));
    auto made = nccl::CreateNcclCommunicator(*std::move(handle), std::move(options));
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return nullptr;
    (*made)->AttachStream(gpu_->stream().native());
    return *std::move(made);
  }

  // Every collective from the first half of the memory to the second.
  Collectives All(Communicator& comm) {
    return Collectives([this, &comm]() -> absl::Status {
      const GatherPart gathers[] = {{gpu_->at(0), gpu_->at(kHalf), kCount * 4},
                                    {gpu_->at(kCount * 4), gpu_->at(kHalf + kCount * 4), 1001}};
      absl::Status status = comm.AllGather(gathers, {"gather", 1});
      const ReducePart part{gpu_->at(kHalf / 4), gpu_->at(kHalf + kHalf / 4), kCount, DType::kF32};
      if (status.ok()) status = comm.ReduceScatter(absl::MakeConstSpan(&part, 1), {"scatter", 2});
      const ReducePart half{gpu_->at(kHalf / 2), gpu_->at(kHalf + kHalf / 2), kCount, DType::kBF16};
      if (status.ok()) status = comm.AllReduce(absl::MakeConstSpan(&half, 1), {"all", 3});
      if (status.ok()) status = comm.Broadcast(gpu_->at(kHalf + kHalf / 2), kCount, 0, {"broadcast", 4});
      return status;
    });
  }

  // New sources, and results that are none.
  void Fill(uint32_t seed) {
    source_ = Numbers(seed, kHalf / 4, DType::kF32);
    gpu_->Write(0, source_);
    gpu_->Write(kHalf, Bytes(kHalf, std::byte{0xFF}));
  }
  // All of them once, from new sources.
  void ExpectOnce(Collectives& all, uint32_t seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Fill(seed);
    const absl::Status status = all.Once(gpu_->device(), gpu_->stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectResults();
  }
  // The same by a recording.
  void ExpectReplay(Recording& recording, uint32_t seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Fill(seed);
    recording.Start();
    gpu_->stream().Synchronize();
    ASSERT_TRUE(gpu_->device().status().ok()) << gpu_->device().status();
    ExpectResults();
  }
  // A sum over one rank is what it was given.
  void ExpectResults() {
    for (const auto& [begin, bytes] : {std::pair<uint64_t, size_t>{0, kCount * 4 + 1001},
                                       {kHalf / 4, kCount * 4},
                                       {kHalf / 2, kCount * 2}}) {
      EXPECT_EQ(std::memcmp(gpu_->Read(kHalf + begin, bytes).data(), source_.data() + begin, bytes), 0)
          << "results from byte " << begin;
    }
  }

  std::shared_ptr<nccl::NcclApi> api_;
  std::unique_ptr<OnGpu> gpu_;
  std::unique_ptr<nccl::NcclHandle> world_;
  Bytes source_;
};

TEST_F(DISABLED_OneRankNccl, Init) {
  EXPECT_TRUE(world_->AsyncError().ok());
  world_->Close(absl::Now() + kPatience);
  EXPECT_TRUE(Init().ok()) << "a second time";
}

TEST_F(DISABLED_OneRankNccl, Split) {
  const std::unique_ptr<Communicator> first = Split(), second = Split();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  for (Communicator* comm : {first.get(), second.get()}) {
    Collectives all = All(*comm);
    ExpectOnce(all, 1);
    if (HasFatalFailure()) return;
    EXPECT_TRUE(comm->Barrier({"barrier", 5}).ok());
  }
  const auto none =
      world_->Split(nccl::kNoColor, 0, {.deadline = absl::Now() + kPatience, .interrupted = {}});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, nullptr);
}

TEST_F(DISABLED_OneRankNccl, RegisteredMemory) {
  const std::unique_ptr<Communicator> comm = Split();
  ASSERT_NE(comm, nullptr);
  ASSERT_TRUE(comm->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes()).ok());
  Collectives all = All(*comm);
  ExpectOnce(all, 2);
  if (HasFatalFailure()) return;
  comm->Detach();
  comm->AttachStream(gpu_->stream().native());
  SCOPED_TRACE("no longer registered");
  ExpectOnce(all, 3);
}

// What training asks NCCL for; of one rank it may make no window all the same.
TEST_F(DISABLED_OneRankNccl, Window) {
  const absl::Status mappable = gpu_->MakeMappable();
  if (absl::IsFailedPrecondition(mappable)) GTEST_SKIP() << "skipped: " << mappable.message();
  ASSERT_TRUE(mappable.ok()) << mappable;
  int version = 0;
  ASSERT_EQ(api_->GetVersion(&version), nccl::kSuccess);
  std::vector<nccl::CtaPolicy> policies = {nccl::CtaPolicy::kLibrarys};
  if (version >= 22800)
    for (const bool gathers : {true, false}) policies.push_back(nccl::CtaPolicyOf(gathers));
  for (const nccl::CtaPolicy policy : policies) {
    SCOPED_TRACE(testing::Message() << "policy " << static_cast<int>(policy));
    const std::unique_ptr<Communicator> comm = Split(/*windows=*/true, policy);
    ASSERT_NE(comm, nullptr);
    const absl::Status window = comm->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes());
    ASSERT_TRUE(window.ok()) << window;
    Collectives all = All(*comm);
    ExpectOnce(all, 20);
    if (HasFatalFailure()) return;
    Fill(21);
    auto recording = all.Record(gpu_->device(), gpu_->stream());
    ASSERT_TRUE(recording.ok()) << recording.status();
    ExpectReplay(**recording, 22);
    recording->reset();
    comm->Detach();
  }
}

TEST_F(DISABLED_OneRankNccl, Capture) {
  const std::unique_ptr<Communicator> comm = Split();
  ASSERT_NE(comm, nullptr);
  ASSERT_TRUE(comm->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes()).ok());
  Collectives all = All(*comm);
  ExpectOnce(all, 4);
  if (HasFatalFailure()) return;
  Fill(5);
  auto recording = all.Record(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(gpu_->Read(kHalf, 1)[0], std::byte{0xFF}) << "it ran while it was recorded";
  for (uint32_t replay = 6; replay < 9; ++replay) {
    ExpectReplay(**recording, replay);
    if (HasFatalFailure()) return;
  }
  recording->reset();
  comm->Detach();
}

TEST_F(DISABLED_OneRankNccl, Abort) {
  std::unique_ptr<Communicator> comm = Split();
  ASSERT_NE(comm, nullptr);
  ASSERT_TRUE(comm->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes()).ok());
  Collectives all = All(*comm);
  ExpectOnce(all, 9);
  if (HasFatalFailure()) return;
  auto recording = all.Record(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(recording.ok()) << recording.status();
  (*recording)->Start();
  const absl::Time begin = absl::Now();
  comm->Abort(absl::UnavailableError("rank 7 was lost"));
  gpu_->stream().Synchronize();
  EXPECT_EQ(comm->Barrier({"later", 6}).message(), "rank 7 was lost");
  // NCCL gives it up when the recordings with its work are gone.
  recording->reset();
  comm->Detach();
  comm.reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(15));
  // The GPU is as it was.
  world_ = nullptr;
  auto world = Init();
  ASSERT_TRUE(world.ok()) << world.status();
  world_ = *std::move(world);
  comm = Split();
  ASSERT_NE(comm, nullptr);
  Collectives again = All(*comm);
  ExpectOnce(again, 10);
}

}  // namespace
}  // namespace ft::conformance
