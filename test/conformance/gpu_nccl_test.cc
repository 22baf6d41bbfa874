// Our side of NCCL with the library itself, on the GPU of this machine. A run of one rank loads no NCCL, and
// a test of several needs a launcher around it, so these run only where they are asked for:
//   --gtest_also_run_disabled_tests --gtest_filter='DISABLED_OneRankNccl*'
//   ftrun --nproc-per-node=2 --standalone PROGRAM --gtest_also_run_disabled_tests
//   --gtest_filter='DISABLED_RanksNccl*'
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/base/convert_elements.h"
#include "runtime/collective/create.h"
#include "runtime/collective/nccl/nccl_communicator.h"
#include "runtime/collective/nccl/nccl_handle.h"
#include "runtime/collective/nccl/nccl_watchdog.h"
#include "runtime/collective/rendezvous/rendezvous.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/device/device.h"
#include "test/conformance/open_nccl.h"

namespace ft::conformance {
namespace {

using Bytes = std::vector<std::byte>;
constexpr absl::Duration kPatience = absl::Seconds(60);

// What a stream does with a communicator: once as it is enqueued, then recorded and replayed, as a training
// step is.
class Collectives final : public HostTask {
 public:
  explicit Collectives(std::function<absl::Status()> calls) : calls_(std::move(calls)) {
    info_.title = "collectives";
  }
  absl::Status Run() override { return calls_(); }

  absl::Status Once(Device& device, Stream& stream) {
    Enqueue(stream);
    stream.Synchronize();
    return device.status();
  }
  absl::StatusOr<std::unique_ptr<Recording>> Record(Device& device, Stream& stream) {
    return device.Record(stream, [&] { Enqueue(stream); });
  }

 private:
  void Enqueue(Stream& stream) {
    const Command command = Command::Call(this, &info_);
    stream.Enqueue(absl::MakeConstSpan(&command, 1));
  }
  const std::function<absl::Status()> calls_;
  CommandInfo info_;
};

// A GPU, and memory on it.
class OnGpu {
 public:
  static absl::StatusOr<OnGpu> Open(int local_rank, uint64_t bytes) {
    // cuDNN is not needed, and may not be there.
    auto opened = cuda::OpenCudaDevice(
        local_rank, {.platform = {.attention = cuda::AttentionChoice::kOwn, .deterministic = true}});
    if (!opened.ok()) return opened.status();
    OnGpu gpu;
    gpu.opened_ = *std::move(opened);
    auto memory = gpu.device().Allocate(bytes);
    if (!memory.ok()) return memory.status();
    gpu.memory_ = *std::move(memory);
    auto stream = gpu.device().CreateStream("reduce", 1);
    if (!stream.ok()) return stream.status();
    gpu.stream_ = *std::move(stream);
    return gpu;
  }
  Device& device() const { return *opened_.device; }
  Stream& stream() const { return *stream_; }
  const Memory& memory() const { return *memory_; }
  std::byte* at(uint64_t offset) const { return static_cast<std::byte*>(memory_->data()) + offset; }
  CudaSide Side(std::shared_ptr<nccl::NcclApi> api) const {
    return {.driver = opened_.driver, .rank_sum = opened_.rank_sum, .nccl = std::move(api)};
  }
  Bytes Read(uint64_t offset, size_t bytes) const {
    Bytes read(bytes);
    EXPECT_TRUE(device().Read(read.data(), at(offset), bytes).ok());
    return read;
  }
  void Write(uint64_t offset, const Bytes& bytes) const {
    EXPECT_TRUE(device().Write(at(offset), bytes.data(), bytes.size()).ok());
  }

 private:
  cuda::OpenedDevice opened_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Stream> stream_;
};

// Numbers of all magnitudes from 2^-12 to 2^11, whose sum depends on the order and on where it is rounded.
float Rough(uint32_t seed, size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u + seed * 40503u + 77u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return (static_cast<float>(x & 0xFFFF) - 32768.0f) * std::ldexp(1.0f, static_cast<int>(x >> 16 & 15) - 20);
}

Bytes Numbers(uint32_t seed, size_t count, DType dtype) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Rough(seed, i);
  Bytes bytes(count * SizeOf(dtype));
  ConvertElements(DType::kF32, reinterpret_cast<const std::byte*>(values.data()), dtype, bytes.data(), count);
  return bytes;
}

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

  std::unique_ptr<Communicator> Split() {
    auto handle =
        world_->Split(/*color=*/0, /*key=*/0, {.deadline = absl::Now() + kPatience, .interrupted = {}});
    EXPECT_TRUE(handle.ok()) << handle.status();
    if (!handle.ok() || *handle == nullptr) return nullptr;
    nccl::NcclCommunicatorOptions options;
    options.size = 1;
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
      const ReducePart part{gpu_->at(kHalf / 4), gpu_->at(kHalf + kHalf / 4), kCount, DType::kF32, 1.0f};
      if (status.ok()) status = comm.ReduceScatter(absl::MakeConstSpan(&part, 1), {"scatter", 2});
      const ReducePart half{gpu_->at(kHalf / 2), gpu_->at(kHalf + kHalf / 2), kCount, DType::kBF16, 1.0f};
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
    Fill(1);
    Collectives all = All(*comm);
    const absl::Status status = all.Once(gpu_->device(), gpu_->stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectResults();
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
  comm->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes());
  Collectives all = All(*comm);
  Fill(2);
  absl::Status status = all.Once(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(status.ok()) << status;
  ExpectResults();
  comm->Detach();
  comm->AttachStream(gpu_->stream().native());
  Fill(3);
  status = all.Once(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(status.ok()) << "no longer registered: " << status;
  ExpectResults();
}

TEST_F(DISABLED_OneRankNccl, Capture) {
  const std::unique_ptr<Communicator> comm = Split();
  ASSERT_NE(comm, nullptr);
  comm->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes());
  Collectives all = All(*comm);
  Fill(4);
  const absl::Status status = all.Once(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(status.ok()) << status;
  Fill(5);
  auto recording = all.Record(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(gpu_->Read(kHalf, 1)[0], std::byte{0xFF}) << "it ran while it was recorded";
  for (uint32_t replay = 6; replay < 9; ++replay) {
    Fill(replay);
    (*recording)->Start();
    gpu_->stream().Synchronize();
    ASSERT_TRUE(gpu_->device().status().ok()) << gpu_->device().status();
    ExpectResults();
  }
  recording->reset();
  comm->Detach();
}

TEST_F(DISABLED_OneRankNccl, Abort) {
  std::unique_ptr<Communicator> comm = Split();
  ASSERT_NE(comm, nullptr);
  comm->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes());
  Collectives all = All(*comm);
  Fill(9);
  ASSERT_TRUE(all.Once(gpu_->device(), gpu_->stream()).ok());
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
  Fill(10);
  Collectives again = All(*comm);
  const absl::Status status = again.Once(gpu_->device(), gpu_->stream());
  ASSERT_TRUE(status.ok()) << status;
  ExpectResults();
}

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
    comm_->RegisterBuffer(gpu_->memory().data(), gpu_->memory().bytes());
  }
  void TearDown() override {
    if (comm_ != nullptr) comm_->Detach();
    comm_ = nullptr;
    rendezvous_ = nullptr;
  }

  // Each rank's numbers, and the sum that ranks on CPUs make of them, scaled by 0.3.
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
    TreeSum(parts, kCount * static_cast<size_t>(comm_->size()), GetParam(), 0.3f, sum.data());
    return sum;
  }

  // A slice of the sum, all of the sum, and the slices gathered again.
  Collectives All() {
    return Collectives([this]() -> absl::Status {
      const size_t slice = kCount * SizeOf(GetParam()), whole = slice * static_cast<size_t>(comm_->size());
      absl::Status status =
          comm_->ReduceScatter(gpu_->at(0), gpu_->at(kHalf), kCount, GetParam(), 0.3f, {"scatter", 1});
      const ReducePart part{gpu_->at(0), gpu_->at(kHalf + Aligned(slice)), whole / SizeOf(GetParam()),
                            GetParam(), 0.3f};
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
