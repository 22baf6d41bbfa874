#include "runtime/backends/cuda/libraries/sample_values.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/base/round_float.h"
#include "test/doubles/libraries/fake_cublaslt.h"

namespace ft::cuda {
namespace {

// Mean, deviation and how many lie within one deviation of the mean.
struct Shape {
  double mean = 0, deviation = 0, within = 0;
};

Shape ShapeOf(const std::vector<double>& values) {
  Shape shape;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) shape.mean += value / n;
  for (const double value : values) shape.deviation += (value - shape.mean) * (value - shape.mean) / n;
  shape.deviation = std::sqrt(shape.deviation);
  for (const double value : values)
    shape.within += std::abs(value - shape.mean) < shape.deviation ? 1 / n : 0;
  return shape;
}

bool AllZero(const std::vector<uint16_t>& bits) {
  return std::all_of(bits.begin(), bits.end(), [](uint16_t x) { return x == 0; });
}

class SampleValuesTest : public CublasLtProductsTest {
 protected:
  SampleValuesTest() { driver_.memory = true; }

  // Its b and c have a column that belongs to nobody.
  static ProductSpec Spec() {
    return {.m = 600,
            .n = 511,
            .k = 704,
            .row_a = 704,
            .row_b = 512,
            .row_c = 512,
            .input = DType::kBF16,
            .output = DType::kBF16};
  }
  std::vector<uint16_t> a_ = std::vector<uint16_t>(600 * 704 + 1), b_ = std::vector<uint16_t>(704 * 512 + 1),
                        c_ = std::vector<uint16_t>(600 * 512), bias_ = std::vector<uint16_t>(512),
                        auxiliary_ = std::vector<uint16_t>(600 * 512), workspace_ = std::vector<uint16_t>(64);
  const ProductOperands operands_ = {a_.data(),         b_.data(),    c_.data(),
                                     workspace_.data(), bias_.data(), auxiliary_.data()};
  const StreamHandle stream_ = reinterpret_cast<StreamHandle>(&driver_);
};

// Those that are only reached by repeating what was drawn, too.
TEST_F(SampleValuesTest, AreNormalThroughout) {
  SampleValues values(driver_);
  ASSERT_TRUE(values.Write(Spec(), operands_, stream_).ok());
  for (const size_t begin : {0, 300000}) {
    std::vector<double> read;
    for (size_t i = begin; i < begin + 100000; ++i) read.push_back(BF16ToFloat(a_[i]));
    const Shape shape = ShapeOf(read);
    EXPECT_NEAR(shape.mean, 0, 0.002);
    EXPECT_NEAR(shape.deviation, 0.125, 0.002);
    EXPECT_NEAR(shape.within, 0.6827, 0.01);  // of a uniform distribution 0.577
  }
  // No two rows of a matrix are the same, whatever its width.
  for (size_t row = 1; row < 600; ++row)
    ASSERT_FALSE(std::equal(a_.begin(), a_.begin() + 704, a_.begin() + static_cast<ptrdiff_t>(row * 704)));
  EXPECT_EQ(a_.back(), 0) << "written behind the end";
  EXPECT_EQ(b_.back(), 0) << "written behind the end";
  EXPECT_TRUE(AllZero(c_)) << "nothing reads it";
}

TEST_F(SampleValuesTest, OnlyWhatALaunchReads) {
  SampleValues values(driver_);
  ProductSpec spec = Spec();
  spec.accumulate = spec.bias = spec.auxiliary = true;
  ASSERT_TRUE(values.Write(spec, operands_, stream_).ok());
  EXPECT_FALSE(AllZero(c_));
  EXPECT_EQ(bias_.back(), 0);
  EXPECT_NE(bias_[510], 0);
  EXPECT_FALSE(AllZero(auxiliary_));
  std::fill(workspace_.begin(), workspace_.end(), uint16_t{7});
  ASSERT_TRUE(values.Clear(spec, operands_, 64, stream_).ok());
  for (const auto* all : {&a_, &b_, &c_, &bias_, &auxiliary_}) EXPECT_TRUE(AllZero(*all));
  EXPECT_EQ(std::count(workspace_.begin(), workspace_.end(), 7), 32);  // behind the bytes that were named
}

TEST_F(SampleValuesTest, OfEveryTypeAndTransposed) {
  SampleValues values(driver_);
  ProductSpec spec{
      .m = 3, .n = 5, .k = 4, .transpose_a = true, .transpose_b = true, .row_a = 4, .row_b = 6, .row_c = 5};
  std::vector<float> a(20, -9), b(40, -9);
  ASSERT_TRUE(values.Write(spec, {a.data(), b.data()}, stream_).ok());
  EXPECT_EQ(std::count(a.begin(), a.end(), -9.0f), 20 - (3 * 4 + 3));  // k rows of m
  EXPECT_EQ(std::count(b.begin(), b.end(), -9.0f), 40 - (4 * 6 + 4));  // n rows of k
  spec.input = DType::kF16;
  std::vector<uint16_t> half(20);
  ASSERT_TRUE(values.Write(spec, {half.data(), nullptr}, stream_).ok());
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(F16ToFloat(half[i]), F16ToFloat(RoundToF16(a[i])));
}

// Bytes that are finite in both formats, and what they are multiplied with.
TEST_F(SampleValuesTest, OfFloatsOf8Bits) {
  SampleValues values(driver_);
  ProductSpec spec{
      .m = 200, .n = 144, .k = 384, .transpose_b = true, .row_a = 384, .row_b = 384, .row_c = 144};
  spec.input = spec.output = DType::kBF16;
  spec.float8 = {.scale_a = ScaleOf::kVectors, .scale_b = ScaleOf::kSquares};
  std::vector<uint8_t> a(200 * 384 + 1, 0xEE), b(144 * 384 + 1, 0xEE);
  std::vector<float> scale_a(3 * 200 + 1, -9), scale_b(2 * 4 + 1, -9);
  ProductOperands operands = {a.data(), b.data()};
  operands.scale_a = scale_a.data();
  operands.scale_b = scale_b.data();
  ASSERT_TRUE(values.Write(spec, operands, stream_).ok());
  for (std::vector<uint8_t>* bytes : {&a, &b}) {
    EXPECT_EQ(bytes->back(), 0xEE) << "written behind the end";
    for (size_t i = 0; i + 1 < bytes->size(); ++i) ASSERT_LT((*bytes)[i] & 0x7F, 0x7C) << i;
  }
  for (std::vector<float>* scales : {&scale_a, &scale_b})
    EXPECT_EQ(std::count(scales->begin(), scales->end(), -9.0f), 1);
  ASSERT_TRUE(values.Clear(spec, operands, 0, stream_).ok());
  EXPECT_EQ(std::count(a.begin(), a.end(), 0), 200 * 384);
  EXPECT_EQ(std::count(scale_b.begin(), scale_b.end(), 0.0f), 8);
}

// What runs while products are timed finds values, what runs afterwards zeros.
TEST_F(SampleValuesTest, AreThereWhileProductsAreTimedAndGoneThen) {
  record_.proposals.assign(2, CUBLAS_STATUS_SUCCESS);
  int runs = 0, on_values = 0;
  record_.on_run = [&] {
    ++runs;
    on_values += !AllZero(a_) && !AllZero(b_);
    std::fill(c_.begin(), c_.end() - 1, uint16_t{0x7FC0});  // NaN: as bad as a result can be
  };
  Products& products = Open(false, /*deterministic=*/false);
  ASSERT_TRUE(products.Create(Spec(), operands_, 128).ok());
  EXPECT_GT(runs, 2);
  EXPECT_EQ(on_values, runs);
  for (const auto* all : {&a_, &b_, &c_, &workspace_}) EXPECT_TRUE(AllZero(*all));

  runs = on_values = 0;
  int apart = 0, apart_on_values = 0;
  ProductSpec fused = Spec();
  fused.bias = fused.auxiliary = true;
  fused.epilogue = Epilogue::kGelu;
  ASSERT_TRUE(products
                  .Fuse(fused, operands_, 128,
                        [&](StreamHandle) {
                          ++apart;
                          apart_on_values += !AllZero(a_) && !AllZero(b_) && !AllZero(bias_);
                          record_.algorithms.push_back(0);
                          return 0;
                        })
                  .ok());
  EXPECT_GT(apart, 0);
  EXPECT_EQ(apart_on_values, apart);
  EXPECT_EQ(on_values, runs);
  for (const auto* all : {&a_, &b_, &c_, &bias_, &auxiliary_, &workspace_}) EXPECT_TRUE(AllZero(*all));
}

TEST_F(SampleValuesTest, NothingIsWrittenWhereNothingIsTimed) {
  record_.proposals.assign(2, CUBLAS_STATUS_SUCCESS);
  std::fill(a_.begin(), a_.end(), uint16_t{3});
  ASSERT_TRUE(Open(false, /*deterministic=*/true).Create(Spec(), operands_, 128).ok());
  record_.proposals.assign(1, CUBLAS_STATUS_SUCCESS);
  ASSERT_TRUE(Open(false, /*deterministic=*/false).Create(Spec(), operands_, 128).ok());
  EXPECT_EQ(std::count(a_.begin(), a_.end(), 3), static_cast<ptrdiff_t>(a_.size()));
}

}  // namespace
}  // namespace ft::cuda
