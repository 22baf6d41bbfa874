#include "runtime/backends/cuda/device/peak_flops.h"

#include "gtest/gtest.h"

namespace ft::cuda {
namespace {

double Bf16(std::string_view name) { return PeakFlops(name, DType::kBF16, false) / 1e12; }

// Names as the driver gives them.
TEST(PeakFlopsTest, DevicesThatShareANumberAreToldApart) {
  EXPECT_EQ(Bf16("NVIDIA A100-SXM4-80GB"), 312);
  EXPECT_EQ(Bf16("NVIDIA A100 80GB PCIe"), 312);
  EXPECT_EQ(Bf16("NVIDIA A10"), 125);
  EXPECT_EQ(Bf16("NVIDIA A10G"), 70);
  EXPECT_EQ(Bf16("NVIDIA H100 80GB HBM3"), 989.5);
  EXPECT_EQ(Bf16("NVIDIA H100 PCIe"), 756);
  EXPECT_EQ(Bf16("NVIDIA H100 NVL"), 835.5);
  EXPECT_EQ(Bf16("NVIDIA H200"), 989.5);
  EXPECT_EQ(Bf16("NVIDIA GH200 480GB"), 989.5);
  EXPECT_EQ(Bf16("NVIDIA B200"), 2250);
  EXPECT_EQ(Bf16("NVIDIA GB200"), 2500);
  EXPECT_EQ(Bf16("NVIDIA L40S"), 362);
  EXPECT_EQ(Bf16("NVIDIA L4"), 121);
  EXPECT_EQ(Bf16("NVIDIA GeForce RTX 4090"), 165.2);
  EXPECT_EQ(Bf16("NVIDIA RTX 6000 Ada Generation"), 364.2);
}

TEST(PeakFlopsTest, NoNumberIsBetterThanAWrongOne) {
  EXPECT_EQ(Bf16("NVIDIA GeForce RTX 4090 Laptop GPU"), 0);
  EXPECT_EQ(Bf16("NVIDIA GeForce RTX 4090 D"), 0);
  EXPECT_EQ(Bf16("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), 0);
  EXPECT_EQ(Bf16("NVIDIA X9000"), 0);
  EXPECT_EQ(Bf16(""), 0);
  EXPECT_EQ(PeakFlops("NVIDIA H200", DType::kI64, true), 0);
}

TEST(PeakFlopsTest, TypesAndTf32) {
  EXPECT_EQ(PeakFlops("NVIDIA H200", DType::kF16, false), 989.5e12);
  EXPECT_EQ(PeakFlops("NVIDIA H200", DType::kF32, false), 67e12);
  EXPECT_EQ(PeakFlops("NVIDIA H200", DType::kF32, true), 494.7e12);
}

}  // namespace
}  // namespace ft::cuda
