// Every conformance case on the GPU of this machine. Without one all tests are skipped, and say so. One test
// per op:
// --gtest_filter='*/matmul'.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "test/conformance/device_bench.h"
#include "test/conformance/fused_gelu.h"
#include "test/conformance/harness.h"
#include "test/conformance/residual_norm.h"

namespace ft::conformance {
namespace {

std::vector<std::string> Ops() {
  std::vector<std::string> ops;
  for (const Case& c : AllCases()) {
    if (std::find(ops.begin(), ops.end(), c.op) == ops.end()) ops.push_back(c.op);
  }
  return ops;
}

// One for the whole run; opening it takes longer than many tests.
const absl::StatusOr<cuda::OpenedDevice>& Gpu() {
  static const auto* const device =
      new absl::StatusOr<cuda::OpenedDevice>(cuda::OpenCudaDevice(0, {.platform = {.deterministic = true}}));
  return *device;
}

// Whether cuDNN has computed any attention so far. Its results are held to what it promises: strictly it is
// our own kernel that is looked at, in the emulation and with the library left out.
bool CudnnAttends() {
  const std::vector<std::string> notes = Gpu()->device->notes();
  return std::any_of(notes.begin(), notes.end(),
                     [](const std::string& note) { return note.ends_with(": cuDNN"); });
}

class GpuConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!Gpu().ok()) GTEST_SKIP() << "skipped: no CUDA device: " << Gpu().status().message();
    absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*Gpu()->device, DeviceClass::kCuda);
    ASSERT_TRUE(bench.ok()) << bench.status();
    bench_ = std::make_unique<DeviceBench>(*std::move(bench));
    for (const Case& c : AllCases()) {
      if (c.op == GetParam()) cases_.push_back(c);
    }
  }

  std::unique_ptr<DeviceBench> bench_;
  std::vector<Case> cases_;
};

TEST_P(GpuConformance, MatchesReference) {
  for (const Case& c : cases_) {
    for (bool in_place : {false, true}) {
      if (in_place && c.rules.reusable.empty()) continue;
      SCOPED_TRACE(c.op + " " + c.label + (in_place ? " in place" : ""));
      const absl::StatusOr<Arrays> got = RunCase(*bench_, c, in_place);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(Compare(CudnnAttends() ? ByCudnn(c) : c, *got, DeviceClass::kCuda), "");
    }
  }
}

TEST_P(GpuConformance, SameBitsTwice) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> first = RunCase(*bench_, c, false), second = RunCase(*bench_, c, false);
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(DifferentBits(*first, *second), "");
  }
}

TEST(GpuResidualNorm, HasTheBitsOfSumAndNorm) {
  if (!Gpu().ok()) GTEST_SKIP() << "skipped: no CUDA device: " << Gpu().status().message();
  absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*Gpu()->device, DeviceClass::kCuda);
  ASSERT_TRUE(bench.ok()) << bench.status();
  for (const Case& c : ResidualNormCases()) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> apart = RunSumThenNorm(*bench, c);
    ASSERT_TRUE(apart.ok()) << apart.status();
    for (bool in_place : {false, true}) {
      const absl::StatusOr<Arrays> fused = RunCase(*bench, c, in_place);
      ASSERT_TRUE(fused.ok()) << fused.status();
      EXPECT_EQ(DifferentBits(*fused, *apart), "");
    }
  }
}

TEST(GpuFusedGelu, HasTheBitsOfTheTwoWhenDeterministic) {
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

// The library's epilogues, where they are the faster way. They may use the GPU's own tanh, whose error is at
// most 2^-10.987 (PTX ISA, tanh.approx.f32).
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
    EXPECT_EQ(Compare(WithGeluOfTheSum(c, 0x1p-10), *got, DeviceClass::kCuda), "");
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOp, GpuConformance, testing::ValuesIn(Ops()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ft::conformance
