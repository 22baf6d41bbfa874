// What is left of the timing of products: zeros, on the GPU of this machine, with the library itself. And
// what it is done for: a product takes another time on zeros than on values; both are printed.
//   --gtest_also_run_disabled_tests --gtest_filter='DISABLED_GpuTiming*'
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/base/cuda_workspace.h"
#include "test/conformance/case.h"
#include "test/conformance/cluster_maker.h"
#include "test/conformance/device_bench.h"
#include "test/conformance/lazy_tensor.h"

namespace ft::conformance {
namespace {

class DISABLED_GpuTiming : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = cuda::OpenCudaDevice(0, {.platform = {.attention = cuda::AttentionChoice::kOwn}});
    if (!opened.ok()) GTEST_SKIP() << "skipped: no CUDA device: " << opened.status().message();
    gpu_ = *std::move(opened);
    auto bench = DeviceBench::Create(*gpu_.device, DeviceClass::kCuda);
    ASSERT_TRUE(bench.ok()) << bench.status();
    bench_ = std::make_unique<DeviceBench>(*std::move(bench));
  }

  Placed Make(const std::string& name, const std::vector<int64_t>& dims) {
    auto placed = Place(*bench_, name, dims, DType::kBF16);
    EXPECT_TRUE(placed.ok()) << placed.status();
    return *std::move(placed);
  }
  Placed Workspace() {
    auto placed = PlaceWorkspace(*bench_, cuda_workspace::Matmul());
    EXPECT_TRUE(placed.ok()) << placed.status();
    return *std::move(placed);
  }
  bool IsZero(const Placed& placed) {
    std::vector<std::byte> bytes(placed.memory->bytes());
    EXPECT_TRUE(bench_->Read(bytes.data(), placed.tensor.data, bytes.size()).ok());
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  }
  // Of 50 in a row.
  double Milliseconds(Kernel& kernel) {
    EXPECT_TRUE(bench_->Run(kernel).ok());
    const absl::Time begin = absl::Now();
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(bench_->Run(kernel).ok());
    return absl::ToDoubleMilliseconds(absl::Now() - begin) / 50;
  }

  cuda::OpenedDevice gpu_;
  std::unique_ptr<DeviceBench> bench_;
};

TEST_F(DISABLED_GpuTiming, LeavesZeros) {
  const Placed a = Make("a", {4096, 768}), b = Make("b", {768, 3072}), bias = Make("bias", {3072}),
               c = Make("c", {4096, 3072}), x = Make("x", {4096, 3072}), workspace = Workspace();
  const KernelOperands product = {{a.tensor, b.tensor, bias.tensor, {}}, {c.tensor}, workspace.tensor},
                       added = {{a.tensor, b.tensor, {}, c.tensor}, {c.tensor}, workspace.tensor},
                       gelu = {{a.tensor, b.tensor, bias.tensor}, {c.tensor, x.tensor}, workspace.tensor};
  KernelAttributes attributes;
  attributes.SetCluster(
      std::make_shared<const Cluster>(Cluster{GeluBody(c.tensor.elements(), c.tensor.dtype), {}, {}}));
  for (const auto& [op, operands] :
       {std::pair{"matmul", product}, {"matmul", added}, {"matmul_gelu", gelu}}) {
    const auto kernel = bench_->Create(op, operands, attributes);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (const Placed* placed : {&a, &b, &bias, &c, &x, &workspace})
      EXPECT_TRUE(IsZero(*placed)) << op << " " << placed->name;
  }
}

TEST_F(DISABLED_GpuTiming, OnZerosAndOnValues) {
  const Placed a = Make("a", {8192, 3072}), b = Make("b", {3072, 3072}), c = Make("c", {8192, 3072}),
               workspace = Workspace();
  const auto kernel = bench_->Create("matmul", {{a.tensor, b.tensor, {}, {}}, {c.tensor}, workspace.tensor},
                                     KernelAttributes());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const double on_zeros = Milliseconds(**kernel);
  ASSERT_TRUE(WriteValues(*bench_, LazyTensor::Normal({8192, 3072}, 1, 1.0), a).ok());
  ASSERT_TRUE(WriteValues(*bench_, LazyTensor::Normal({3072, 3072}, 2, 1.0), b).ok());
  const double on_values = Milliseconds(**kernel);
  std::cout << fmt::format("product [8192, 3072] x [3072, 3072]: {:.3f} ms on zeros, {:.3f} ms on values\n",
                           on_zeros, on_values);
}

}  // namespace
}  // namespace ft::conformance
