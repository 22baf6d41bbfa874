// How plans and handles are kept and used, on a cuDNN that takes everything and does nothing. What the real
// one says of our graphs is in cudnn_attention_plans_test.cc.
#include "runtime/backends/cuda/libraries/cudnn_attention.h"

#include <cstring>
#include <map>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "runtime/backends/cuda/libraries/cudnn_api.h"
#include "runtime/backends/cuda/library_error.h"

namespace ft::cuda {
namespace {

struct Record {
  std::map<cudnnBackendDescriptorType_t, int> created;
  std::vector<int64_t> engines;                 // that were asked for by number
  std::vector<cudnnBackendDescriptor_t> packs;  // as they ran
  std::vector<cudaStream_t> streams;
  int open = 0;  // descriptors and handles that are not destroyed
  int64_t workspace_bytes = 0;
  cudnnStatus_t can_create = CUDNN_STATUS_SUCCESS, can_run = CUDNN_STATUS_SUCCESS;
};
Record* record = nullptr;

cudnnStatus_t SetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t, int64_t, const void* values) {
  if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) record->engines.push_back(*static_cast<const int64_t*>(values));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t, int64_t, int64_t* count, void* values) {
  *count = 1;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
    *static_cast<int64_t*>(values) = record->workspace_bytes;
  return CUDNN_STATUS_SUCCESS;
}

CudnnApi FakeApi() {
  CudnnApi api;
  api.get_version = []() -> size_t { return 91900; };
  api.get_error_string = [](cudnnStatus_t) -> const char* { return "CUDNN_STATUS_X"; };
  api.get_last_error_string = [](char* text, size_t bytes) { std::strncpy(text, "the reason", bytes); };
  api.create = [](cudnnHandle_t* handle) {
    if (record->can_create != CUDNN_STATUS_SUCCESS) return record->can_create;
    ++record->open;
    *handle = reinterpret_cast<cudnnHandle_t>(record);
    return CUDNN_STATUS_SUCCESS;
  };
  api.destroy = [](cudnnHandle_t) {
    --record->open;
    return CUDNN_STATUS_SUCCESS;
  };
  api.set_stream = [](cudnnHandle_t, cudaStream_t stream) {
    record->streams.push_back(stream);
    return CUDNN_STATUS_SUCCESS;
  };
  api.create_descriptor = [](cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
    ++record->created[type];
    ++record->open;
    *descriptor = new char;
    return CUDNN_STATUS_SUCCESS;
  };
  api.destroy_descriptor = [](cudnnBackendDescriptor_t descriptor) {
    --record->open;
    delete static_cast<char*>(descriptor);
    return CUDNN_STATUS_SUCCESS;
  };
  api.set_attribute = SetAttribute;
  api.get_attribute = GetAttribute;
  api.finalize = [](cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; };
  api.execute = [](cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t pack) {
    record->packs.push_back(pack);
    return record->can_run;
  };
  return api;
}

class CudnnAttentionTest : public testing::Test {
 protected:
  CudnnAttentionTest() { record = &record_; }
  ~CudnnAttentionTest() override {
    EXPECT_EQ(record_.open, 0) << "descriptors or handles that were not destroyed";
    record = nullptr;
  }
  static std::unique_ptr<FusedAttention> Open(int major, bool deterministic) {
    auto attention = CreateCudnnAttention(FakeApi(), {.name = "a device", .major = major}, deterministic);
    EXPECT_TRUE(attention.ok()) << attention.status();
    return std::move(*attention);
  }
  int Plans() { return record_.created[CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR]; }

  Record record_;
  const AttentionSpec spec_ = {2, 64, 4, 2, 64, true, 0.125f, DType::kBF16};
  static constexpr uint64_t kEnough = uint64_t{1} << 30;
  alignas(256) char memory_[1024] = {};
};

TEST_F(CudnnAttentionTest, ALaunchWithTheSameAddressesMakesNothingNew) {
  auto kernel = Open(9, false)->Forward(spec_, kEnough);  // outlives what made it
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  AttentionForwardArgs args = {memory_, memory_, memory_, memory_, reinterpret_cast<float*>(memory_),
                               memory_};
  const auto stream = reinterpret_cast<StreamHandle>(memory_);
  EXPECT_EQ((*kernel)->Launch(args, stream), 0);
  const auto created = record_.created;
  EXPECT_EQ((*kernel)->Launch(args, nullptr), 0);
  EXPECT_EQ(record_.created, created);
  args.out = memory_ + 256;
  EXPECT_EQ((*kernel)->Launch(args, nullptr), 0);
  EXPECT_EQ(record_.created[CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR], 2);
  ASSERT_EQ(record_.packs.size(), 3u);
  EXPECT_EQ(record_.packs[0], record_.packs[1]);
  EXPECT_EQ(record_.streams, (std::vector<cudaStream_t>{stream, nullptr, nullptr}));
}

TEST_F(CudnnAttentionTest, ReportsALaunchThatFails) {
  auto kernel = Open(9, false)->Backward(spec_, kEnough);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  record_.can_run = CUDNN_STATUS_EXECUTION_FAILED;
  EXPECT_EQ(DescribeLibraryError((*kernel)->Launch({}, nullptr)),
            fmt::format("cudnnBackendExecute returned cudnnStatus_t {}",
                        static_cast<int>(CUDNN_STATUS_EXECUTION_FAILED)));
}

TEST_F(CudnnAttentionTest, EqualSpecsShareAPlanThatFits) {
  record_.workspace_bytes = 1000;
  auto attention = Open(9, false);
  ASSERT_TRUE(attention->Forward(spec_, kEnough).ok());
  ASSERT_TRUE(attention->Forward(spec_, 1000).ok());
  EXPECT_EQ(Plans(), 1);
  EXPECT_EQ(attention->Forward(spec_, 999).status(),
            absl::UnimplementedError("cuDNN 9.19.0: needs 1000 bytes of workspace, there are 999"));
  const int plans = Plans();
  ASSERT_TRUE(attention->Backward(spec_, kEnough).ok());
  EXPECT_EQ(Plans(), plans + 1);
  AttentionSpec full = spec_;
  full.causal = false;
  ASSERT_TRUE(attention->Forward(full, kEnough).ok());
  EXPECT_EQ(Plans(), plans + 2);
}

TEST_F(CudnnAttentionTest, AsksForAnOrderedEngineOnlyWhenDeterministic) {
  ASSERT_TRUE(Open(10, false)->Backward(spec_, kEnough).ok());
  EXPECT_TRUE(record_.engines.empty());
  auto attention = Open(10, true);
  ASSERT_TRUE(attention->Backward(spec_, kEnough).ok());
  EXPECT_EQ(record_.engines, std::vector<int64_t>{5});
  ASSERT_TRUE(attention->Forward(spec_, kEnough).ok());
  EXPECT_EQ(record_.engines.size(), 1u);
}

// Hopper's has none in 9.19. Without the f32 sums of dq only row sums, 2 KiB, are ours.
TEST_F(CudnnAttentionTest, DeterministicHopperTakesProducts) {
  auto attention = Open(9, true);
  ASSERT_TRUE(attention->Backward(spec_, 2048).ok());
  EXPECT_TRUE(record_.engines.empty());
  EXPECT_EQ(attention->Backward({4, 64, 4, 2, 64, true, 0.125f, DType::kBF16}, 2048).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(CudnnAttentionTest, SaysWhyADeviceCannotBeUsed) {
  record_.can_create = CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
  EXPECT_EQ(
      CreateCudnnAttention(FakeApi(), {.name = "NVIDIA K80"}, false).status(),
      absl::FailedPreconditionError("cuDNN 9.19.0 cannot be used on NVIDIA K80: cudnnCreate: CUDNN_STATUS_X "
                                    "(the reason)"));
}

}  // namespace
}  // namespace ft::cuda
