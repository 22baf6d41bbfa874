// Kernels in the shapes of real models on the GPU of this machine (real_shapes.h). These take gigabytes and
// seconds each, so they run only where they are asked for:
//   --gtest_also_run_disabled_tests --gtest_filter='DISABLED_Real/*'
// The same scaled down (Small/*) run everywhere, on an emulated GPU too.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "fmt/format.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "test/conformance/device_bench.h"
#include "test/conformance/real_shapes.h"

namespace ft::conformance {
namespace {

// How kernels are chosen.
enum class Mode {
  kFast,           // by timing; bits may differ from run to run
  kDeterministic,  // the same bits every time
  kOwnAttention,   // the same, without cuDNN
};

std::string NameOf(Mode mode) {
  return mode == Mode::kFast ? "fast" : mode == Mode::kDeterministic ? "deterministic" : "own";
}

class GpuShapes : public testing::TestWithParam<std::tuple<RealShape, Mode>> {};

TEST_P(GpuShapes, MatchSampledReference) {
  const auto& [shape, mode] = GetParam();
  cuda::CudaDeviceOptions options;
  options.platform.deterministic = mode != Mode::kFast;
  if (mode == Mode::kOwnAttention) options.platform.attention = cuda::AttentionChoice::kOwn;
  const absl::StatusOr<cuda::OpenedDevice> gpu = cuda::OpenCudaDevice(0, options);
  if (!gpu.ok()) GTEST_SKIP() << "skipped: no CUDA device: " << gpu.status().message();
  absl::StatusOr<DeviceBench> bench = DeviceBench::Create(*gpu->device, DeviceClass::kCuda);
  ASSERT_TRUE(bench.ok()) << bench.status();
  const absl::StatusOr<Findings> findings = shape.run(*bench, /*twice=*/mode != Mode::kFast);
  if (absl::IsResourceExhausted(findings.status()))
    GTEST_SKIP() << "skipped: too little memory: " << findings.status().message();
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_GE(findings->size(), 7u);
  for (const Finding& finding : *findings) {
    EXPECT_EQ(finding.wrong, "");
    std::cout << fmt::format("  {}: {:.2f} of what is allowed\n", finding.what, finding.of_allowed);
  }
  for (const std::string& note : gpu->device->notes()) std::cout << "  " << note << "\n";
}

// Our own attention is another kernel for those shapes alone.
std::vector<std::tuple<RealShape, Mode>> Runs(ShapeScale scale) {
  std::vector<std::tuple<RealShape, Mode>> runs;
  for (const RealShape& shape : RealShapes(scale)) {
    for (const Mode mode : {Mode::kFast, Mode::kDeterministic}) runs.emplace_back(shape, mode);
    if (shape.name.starts_with("attention")) runs.emplace_back(shape, Mode::kOwnAttention);
  }
  return runs;
}

std::string NameOfRun(const testing::TestParamInfo<std::tuple<RealShape, Mode>>& info) {
  return std::get<0>(info.param).name + "_" + NameOf(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(DISABLED_Real, GpuShapes, testing::ValuesIn(Runs(ShapeScale::kReal)), NameOfRun);
INSTANTIATE_TEST_SUITE_P(Small, GpuShapes, testing::ValuesIn(Runs(ShapeScale::kSmall)), NameOfRun);

}  // namespace
}  // namespace ft::conformance
