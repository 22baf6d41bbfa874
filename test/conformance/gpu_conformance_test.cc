// Every conformance case on the GPU of this machine. Without one all tests are skipped, and say so. One test
// per op: --gtest_filter='*/matmul'. Beside GoogleTest's options it takes ftexec's
//   --deterministic=on|off    off: as users train; SameBitsTwice need not hold then
//   --attention=auto|cudnn|own
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <string_view>

#include "absl/strings/match.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/base/status_macros.h"
#include "test/conformance/bias_grad.h"
#include "test/conformance/device_bench.h"
#include "test/conformance/float8_cases.h"
#include "test/conformance/fused_gelu.h"
#include "test/conformance/harness.h"

namespace ft::conformance {
namespace {

// What the device is opened with.
cuda::PlatformOptions& Options() {
  static cuda::PlatformOptions options = {.deterministic = true};
  return options;
}

// Whether it knows the argument.
bool Take(std::string_view argument) {
  const std::map<std::string_view, std::function<void()>> known = {
      {"--deterministic=on", [] { Options().deterministic = true; }},
      {"--deterministic=off", [] { Options().deterministic = false; }},
      {"--attention=auto", [] { Options().attention = cuda::AttentionChoice::kAuto; }},
      {"--attention=cudnn", [] { Options().attention = cuda::AttentionChoice::kCudnn; }},
      {"--attention=own", [] { Options().attention = cuda::AttentionChoice::kOwn; }},
  };
  const auto found = known.find(argument);
  if (found != known.end()) found->second();
  return found != known.end();
}

// One for the whole run; opening it takes longer than many tests.
const absl::StatusOr<cuda::OpenedDevice>& Gpu() {
  static const auto* const device =
      new absl::StatusOr<cuda::OpenedDevice>(cuda::OpenCudaDevice(0, {.platform = Options()}));
  return *device;
}

// The same GPU, with our own kernels of attention.
const absl::StatusOr<cuda::OpenedDevice>& GpuWithoutCudnn() {
  static const auto* const device = [] {
    cuda::PlatformOptions options = Options();
    options.attention = cuda::AttentionChoice::kOwn;
    return new absl::StatusOr<cuda::OpenedDevice>(cuda::OpenCudaDevice(0, {.platform = options}));
  }();
  return *device;
}

// The library's GELU may use the GPU's own tanh, whose error is at most 2^-10.987 (PTX ISA, tanh.approx.f32).
constexpr double kTanhError = 0x1p-10;

// What a case is held to where libraries may have a part in it.
Case AsPromised(const Case& c) {
  if (IsFloat8(c)) return WithFloat8Sums(c);
  return !Options().deterministic && HasEpilogue(c) ? WithGeluOfTheSum(c, kTanhError) : c;
}

// A product in fp8 that only GPUs of another compute capability have.
bool IsOfOtherGpus(const Case& c, const absl::Status& status) {
  return IsFloat8(c) && absl::IsInvalidArgument(status) &&
         absl::StrContains(status.message(), "of compute capability");
}

class GpuConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!Gpu().ok()) GTEST_SKIP() << "skipped: no CUDA device: " << Gpu().status().message();
    absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*Gpu()->device, DeviceClass::kCuda);
    ASSERT_TRUE(bench.ok()) << bench.status();
    bench_ = std::make_unique<DeviceBench>(*std::move(bench));
    cases_ = CasesOf(GetParam());
    ASSERT_FALSE(cases_.empty());
  }

  // A shape that cuDNN refuses is an error which names our own kernels: these have to compute it then.
  absl::StatusOr<Arrays> Run(const Case& c, bool in_place) {
    absl::StatusOr<Arrays> got = RunCase(*bench_, c, in_place);
    const bool refused = Options().attention == cuda::AttentionChoice::kAuto &&
                         absl::IsInvalidArgument(got.status()) &&
                         absl::StrContains(got.status().message(), "--attention=own");
    if (!refused) return got;
    FT_RETURN_IF_ERROR(GpuWithoutCudnn().status());
    FT_ASSIGN_OR_RETURN(DeviceBench own, DeviceBench::Create(*GpuWithoutCudnn()->device, DeviceClass::kCuda));
    return RunCase(own, c, in_place);
  }

  std::unique_ptr<DeviceBench> bench_;
  std::vector<const Case*> cases_;
};

TEST_P(GpuConformance, MatchesReference) {
  for (const Case* each : cases_) {
    const Case& c = *each;
    for (bool in_place : {false, true}) {
      if (in_place && c.rules.reusable.empty()) continue;
      SCOPED_TRACE(c.op + " " + c.label + (in_place ? " in place" : ""));
      const absl::StatusOr<Arrays> got = Run(c, in_place);
      if (IsOfOtherGpus(c, got.status())) continue;
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(Compare(AsPromised(c), *got, DeviceClass::kCuda), "");
    }
  }
}

TEST_P(GpuConformance, SameBitsTwice) {
  if (!Options().deterministic) GTEST_SKIP() << "skipped: only promised with --deterministic=on";
  for (const Case* each : cases_) {
    const Case& c = *each;
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> first = Run(c, false), second = Run(c, false);
    if (IsOfOtherGpus(c, first.status())) continue;
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(DifferentBits(*first, *second), "");
  }
}

TEST(GpuFusedGelu, HasTheBitsOfTheTwoWhenDeterministic) {
  if (!Options().deterministic) GTEST_SKIP() << "skipped: only promised with --deterministic=on";
  if (!Gpu().ok()) GTEST_SKIP() << "skipped: no CUDA device: " << Gpu().status().message();
  absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*Gpu()->device, DeviceClass::kCuda);
  ASSERT_TRUE(bench.ok()) << bench.status();
  for (const Case& c : FusedGeluCases()) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> apart = RunProductThenGelu(*bench, c), fused = RunCase(*bench, c, false);
    ASSERT_TRUE(apart.ok()) << apart.status();
    ASSERT_TRUE(fused.ok()) << fused.status();
    EXPECT_EQ(DifferentBits(*fused, *apart), "");
  }
}

// The library's epilogues, where they are the faster way.
TEST(GpuFusedGelu, MatchesReferenceWithEpilogues) {
  if (!Gpu().ok()) GTEST_SKIP() << "skipped: no CUDA device: " << Gpu().status().message();
  const absl::StatusOr<cuda::OpenedDevice> timing = cuda::OpenCudaDevice(0, {});
  ASSERT_TRUE(timing.ok()) << timing.status();
  absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*timing->device, DeviceClass::kCuda);
  ASSERT_TRUE(bench.ok()) << bench.status();
  for (const Case& c : EpilogueCases()) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> got = RunCase(*bench, c, false);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Compare(WithGeluOfTheSum(c, kTanhError), *got, DeviceClass::kCuda), "");
  }
}

TEST(GpuBiasGrad, HasTheBitsOfTheTwoWhenDeterministic) {
  if (!Options().deterministic) GTEST_SKIP() << "skipped: only promised with --deterministic=on";
  if (!Gpu().ok()) GTEST_SKIP() << "skipped: no CUDA device: " << Gpu().status().message();
  absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*Gpu()->device, DeviceClass::kCuda);
  ASSERT_TRUE(bench.ok()) << bench.status();
  for (const Case& c : BiasGradCases(/*exact=*/false)) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> apart = RunProductAndSums(*bench, c), got = RunCase(*bench, c, false);
    ASSERT_TRUE(apart.ok()) << apart.status();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(DifferentBits(*got, *apart), "");
  }
}

// The library's epilogues, where they are the faster way.
TEST(GpuBiasGrad, MatchesReferenceWithEpilogues) {
  if (!Gpu().ok()) GTEST_SKIP() << "skipped: no CUDA device: " << Gpu().status().message();
  const absl::StatusOr<cuda::OpenedDevice> timing = cuda::OpenCudaDevice(0, {});
  ASSERT_TRUE(timing.ok()) << timing.status();
  absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*timing->device, DeviceClass::kCuda);
  ASSERT_TRUE(bench.ok()) << bench.status();
  for (const Case& c : BiasGradCases(/*exact=*/false)) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> got = RunCase(*bench, c, false);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Compare(c, *got, DeviceClass::kCuda), "");
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOp, GpuConformance, testing::ValuesIn(Ops()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ft::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // takes its own
  for (int i = 1; i < argc; ++i) {
    if (!ft::conformance::Take(argv[i])) {
      std::cerr << argv[i]
                << " is not understood; known are --deterministic=on|off and --attention=auto|cudnn|own\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
