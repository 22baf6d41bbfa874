// cuDNN's own judgement of our graphs, without a GPU: devices are described to it by their properties, and
// testing/fake_libcuda.cc stands in for the driver that compiled kernels are loaded into.
#include "runtime/backends/cuda/libraries/cudnn_attention_plans.h"

#include <dlfcn.h>

#include <optional>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "runtime/base/cuda_workspace.h"

namespace ft::cuda {
namespace {

constexpr uint64_t kUnlimited = uint64_t{1} << 40;

struct Device {
  const char* name;
  int compute_capability, multiprocessors, shared_bytes, l2_bytes;
  int64_t memory_bytes;
};
constexpr Device kA100 = {"NVIDIA A100-SXM4-80GB", 80, 108, 166912, 41943040, int64_t{80} << 30};
constexpr Device kH100 = {"NVIDIA H100 80GB HBM3", 90, 132, 232448, 52428800, int64_t{80} << 30};
constexpr Device kB200 = {"NVIDIA B200", 100, 148, 232448, 132644864, int64_t{180} << 30};

std::string Json(const Device& d) {
  return fmt::format(
      R"({{"deviceName":"{}","deviceVer":{},"multiProcessorCount":{},"maxSharedMemoryPerBlockOptin":{},)"
      R"("l2CacheSize":{},"totalGlobalMem":{},"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
      R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":2619000,"cudaDeviceId":0,)"
      R"("driverVer":13000}})",
      d.name, d.compute_capability * 10, d.multiprocessors, d.shared_bytes, d.l2_bytes, d.memory_bytes);
}

AttentionSpec Spec(int64_t batch, int64_t positions, int64_t heads, int64_t kv_heads, int64_t head_size,
                   bool causal = true, DType dtype = DType::kBF16) {
  return {batch, positions, heads, kv_heads, head_size, causal, 0.125f, dtype};
}
AttentionSpec SideBySide(AttentionSpec spec) {
  spec.side_by_side = true;
  return spec;
}
AttentionSpec Windowed(AttentionSpec spec, int64_t window) {
  spec.window = window;
  return spec;
}
const AttentionSpec kGpt2 = Spec(64, 1024, 12, 12, 64), kGpt2Xl = Spec(16, 1024, 25, 25, 64),
                    kQwen = Spec(32, 1024, 12, 2, 128), kDebug = Spec(4, 64, 4, 4, 16),
                    kOdd = Spec(2, 77, 6, 2, 64, false, DType::kF16);

uint64_t PlannedForGradient(const AttentionSpec& s) {
  return static_cast<uint64_t>(
      cuda_workspace::CudnnAttentionGrad({s.batch, s.positions, s.heads, s.kv_heads, s.head_size, s.dtype}));
}

class CudnnAttentionPlansTest : public testing::Test {
 protected:
  void SetUp() override {
    // First: cuDNN's own search for libcuda.so.1 then ends at this one.
    void* const driver = dlopen(FT_FAKE_LIBCUDA, RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(driver, nullptr) << dlerror();
    take_kernels_ = reinterpret_cast<const char* (*)()>(dlsym(driver, "FtTakeKernels"));
    absl::StatusOr<CudnnApi> api = LoadCudnn();
    if (!api.ok()) GTEST_SKIP() << "skipped: " << api.status().message();
    api_ = *api;
  }

  CudnnTarget Target(const Device& device) {
    auto descriptor = CudnnDescriptor::Create(api_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    EXPECT_TRUE(descriptor.ok()) << descriptor.status();
    const std::string json = Json(device);
    EXPECT_EQ(descriptor->Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                              static_cast<int64_t>(json.size()), json.data()),
              absl::OkStatus());
    EXPECT_EQ(descriptor->Finalize("device"), absl::OkStatus());
    device_.emplace(std::move(*descriptor));
    return {.device = &*device_};
  }

  absl::StatusOr<AttentionForwardPlan> Forward(const Device& device, const AttentionSpec& spec,
                                               uint64_t workspace_bytes = kUnlimited) {
    return AttentionForwardPlan::Create(api_, Target(device), spec, workspace_bytes);
  }
  absl::StatusOr<AttentionBackwardPlan> Backward(const Device& device, const AttentionSpec& spec,
                                                 QueryGradient query_gradient,
                                                 uint64_t workspace_bytes = kUnlimited) {
    return AttentionBackwardPlan::Create(api_, Target(device), device.compute_capability, spec,
                                         query_gradient, workspace_bytes);
  }

  // Both directions have plans that fit in what the compiler plans for them, made of kernels with these
  // names.
  void ExpectFused(const Device& device, const AttentionSpec& spec, const std::string& forward_kernel,
                   const std::string& backward_kernel) {
    take_kernels_();
    auto forward = Forward(device, spec, static_cast<uint64_t>(cuda_workspace::CudnnAttention()));
    ASSERT_TRUE(forward.ok()) << forward.status();
    EXPECT_NE(std::string(take_kernels_()).find(forward_kernel), std::string::npos);
    auto backward = Backward(device, spec, QueryGradient::kAtomic, PlannedForGradient(spec));
    ASSERT_TRUE(backward.ok()) << backward.status();
    EXPECT_NE(std::string(take_kernels_()).find(backward_kernel), std::string::npos);
  }

  bool IsAtLeast(size_t version) const { return api_.get_version() >= version; }

  CudnnApi api_;
  std::optional<CudnnDescriptor> device_;
  const char* (*take_kernels_)() = nullptr;
};

TEST_F(CudnnAttentionPlansTest, HopperFusesModels) {
  for (const AttentionSpec& spec : {kGpt2, kGpt2Xl, kQwen, kDebug}) {
    SCOPED_TRACE(fmt::format("{}x{}x{}x{}", spec.batch, spec.positions, spec.heads, spec.head_size));
    ExpectFused(kH100, spec, "sm90_flash_fprop", "sm90_flash_bprop");
  }
}

TEST_F(CudnnAttentionPlansTest, FusesWhereTheProjectionWroteQueriesKeysAndValues) {
  for (const AttentionSpec& spec : {kGpt2, kGpt2Xl, kQwen, kDebug})
    ExpectFused(kH100, SideBySide(spec), "sm90_flash_fprop", "sm90_flash_bprop");
  for (const AttentionSpec& spec : {kGpt2, kQwen}) {
    ExpectFused(kA100, SideBySide(spec), "flash_fprop", "flash_bprop");
    ExpectFused(kB200, SideBySide(spec), "sdpa", "sdpa");
  }
  ExpectFused(kH100, SideBySide(kOdd), "flash_fprop", "flash_bprop");
  EXPECT_TRUE(Backward(kB200, SideBySide(kGpt2), QueryGradient::kOrdered, PlannedForGradient(kGpt2)).ok());
}

TEST_F(CudnnAttentionPlansTest, FusesCausalWindows) {
  for (const AttentionSpec& spec : {kGpt2, kQwen, SideBySide(kGpt2)}) {
    ExpectFused(kH100, Windowed(spec, 100), "flash_fprop", "flash_bprop");
    ExpectFused(kA100, Windowed(spec, 100), "flash_fprop", "flash_bprop");
    ExpectFused(kB200, Windowed(spec, 100), "sdpa", "sdpa");
  }
}

TEST_F(CudnnAttentionPlansTest, IsNotAskedForCapsBiasesAndWindowsOfBothSides) {
  AttentionSpec capped = kGpt2, biased = kGpt2;
  capped.softcap = 50.0f;
  biased.alibi = true;
  for (const AttentionSpec& spec : {capped, biased, Windowed(kOdd, 8)}) {
    EXPECT_EQ(Forward(kH100, spec).status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(Backward(kH100, spec, QueryGradient::kAtomic).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

TEST_F(CudnnAttentionPlansTest, HopperFusesOddShapesWithoutMaskAndInF16) {
  ExpectFused(kH100, kOdd, "flash_fprop", "flash_bprop");
}

TEST_F(CudnnAttentionPlansTest, AmpereAndBlackwellFuse) {
  ExpectFused(kA100, kQwen, "flash_fprop", "flash_bprop");
  ExpectFused(kA100, kOdd, "flash_fprop", "flash_bprop");
  ExpectFused(kB200, kGpt2, "sdpa", "sdpa");
  ExpectFused(kB200, kQwen, "sdpa", "sdpa");
  ExpectFused(kB200, kOdd, "flash_fprop", "flash_bprop");
}

TEST_F(CudnnAttentionPlansTest, OrderedGradientsWhereThereIsAnEngine) {
  for (const AttentionSpec& spec : {kGpt2, kQwen}) {
    auto blackwell = Backward(kB200, spec, QueryGradient::kOrdered, PlannedForGradient(spec));
    EXPECT_TRUE(blackwell.ok()) << blackwell.status();
    auto hopper = Backward(kH100, spec, QueryGradient::kOrdered, PlannedForGradient(spec));
    if (IsAtLeast(92500)) {
      EXPECT_TRUE(hopper.ok()) << hopper.status();
    } else {
      EXPECT_EQ(hopper.status(), absl::UnimplementedError("no engine with ordered sums"));
    }
  }
  EXPECT_EQ(Backward(kA100, kGpt2, QueryGradient::kOrdered).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(CudnnAttentionPlansTest, GradientsByProductsNeedTheScores) {
  for (const Device& device : {kA100, kH100}) {
    auto plan = Backward(device, kGpt2, QueryGradient::kProducts);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_GE(plan->workspace_bytes(), uint64_t{64} * 12 * 1024 * 1024 * 2);
    EXPECT_EQ(Backward(device, kGpt2, QueryGradient::kProducts, PlannedForGradient(kGpt2)).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

TEST_F(CudnnAttentionPlansTest, TakesAnEngineThatFits) {
  auto best = Forward(kH100, kDebug), least = Forward(kH100, kDebug, 0);
  ASSERT_TRUE(best.ok()) << best.status();
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_GT(best->workspace_bytes(), 0u);
  EXPECT_EQ(least->workspace_bytes(), 0u);
}

TEST_F(CudnnAttentionPlansTest, RefusesWithAReason) {
  EXPECT_EQ(Forward(kH100, Spec(2, 64, 4, 4, 64, true, DType::kF32)).status(),
            absl::UnimplementedError("cuDNN's attention is for bf16 and f16"));
  const absl::Status size = Forward(kH100, Spec(2, 64, 4, 4, 12)).status();
  EXPECT_EQ(size.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(size.message().find("not a multiple of 8"), std::string::npos) << size;
  EXPECT_EQ(size.message().find('\n'), std::string::npos) << size;
  // Row sums, 4 KiB, and dq as f32, 64 KiB, are ours.
  const absl::Status space = Backward(kH100, kDebug, QueryGradient::kAtomic, 69632).status();
  EXPECT_EQ(space, absl::UnimplementedError("needs 256 bytes of workspace, there are 0"));
  EXPECT_EQ(Backward(kH100, kDebug, QueryGradient::kAtomic, 69631).status(),
            absl::UnimplementedError("needs more than 69632 bytes of workspace, there are 69631"));
}

TEST_F(CudnnAttentionPlansTest, BindsAddresses) {
  alignas(256) static char memory[4096];
  auto forward = Forward(kH100, kDebug);
  ASSERT_TRUE(forward.ok()) << forward.status();
  float* const statistics = reinterpret_cast<float*>(memory);
  EXPECT_EQ(forward->Bind({memory, memory, memory, memory, statistics, memory}).status(), absl::OkStatus());
  auto backward = Backward(kH100, kDebug, QueryGradient::kAtomic);
  ASSERT_TRUE(backward.ok()) << backward.status();
  EXPECT_EQ(
      backward->Bind({memory, memory, memory, memory, memory, statistics, memory, memory, memory, memory})
          .status(),
      absl::OkStatus());
}

}  // namespace
}  // namespace ft::cuda
