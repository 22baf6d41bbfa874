// The loss by chunks of rows, which no conformance case is large enough for, and scales that f16 cannot hold.
#include "runtime/kernels/linear_cross_entropy/cuda.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/round_float.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::cuda {
namespace {

uint16_t Narrow(float value, DType dtype) {
  return dtype == DType::kBF16 ? RoundToBF16(value) : RoundToF16(value);
}

float Wide(uint16_t bits, DType dtype) {
  if (dtype == DType::kF16) return F16ToFloat(bits);
  const uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Numbers kept in a type; aligned to 256 bytes.
class Numbers {
 public:
  Numbers(int64_t count, DType dtype)
      : dtype_(dtype), storage_(count * SizeOf(dtype) + 256, std::byte{0xCD}) {}
  void* data() {
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(storage_.data()) + 255) / 256 * 256);
  }
  void Set(const std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (dtype_ == DType::kF32) static_cast<float*>(data())[i] = values[i];
      if (dtype_ != DType::kF32) static_cast<uint16_t*>(data())[i] = Narrow(values[i], dtype_);
    }
  }
  float at(int64_t i) {
    return dtype_ == DType::kF32 ? static_cast<float*>(data())[i]
                                 : Wide(static_cast<uint16_t*>(data())[i], dtype_);
  }

 private:
  DType dtype_;
  std::vector<std::byte> storage_;
};

struct Problem {
  int64_t rows, vocabulary, width;
  DType compute, reduce;
  bool with_acc = false;
  double dloss = 1.0;
  float dloss_scale = 1.0f;
  float range = 1.0f;  // of x and weight
};

struct Results {
  float loss = 0;
  std::vector<float> dx, dweight;
};

std::vector<float> Random(int64_t count, unsigned seed, float range) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-range, range);
  std::vector<float> values(count);
  // Numbers that f16 and bf16 both hold.
  for (float& value : values) value = Wide(Narrow(uniform(generator), DType::kBF16), DType::kBF16);
  return values;
}

// By chunks of `chunk` rows; all at once when it is 0.
Results Compute(const Problem& p, int64_t chunk) {
  if (chunk == 0) chunk = p.rows;
  Numbers x(p.rows * p.width, p.compute), weight(p.vocabulary * p.width, p.compute);
  Numbers dx(p.rows * p.width, p.compute), dweight(p.vocabulary * p.width, p.reduce), loss(1, DType::kF32);
  x.Set(Random(p.rows * p.width, 1, p.range));
  weight.Set(Random(p.vocabulary * p.width, 2, p.range));
  if (p.with_acc) dweight.Set(Random(p.vocabulary * p.width, 3, 0.01f));
  std::vector<int32_t> targets(p.rows);
  for (int64_t i = 0; i < p.rows; ++i)
    targets[i] = i % 5 == 3 ? -1 : static_cast<int32_t>(i * 7 % p.vocabulary);
  float dloss_scale = p.dloss_scale;
  const int64_t bytes = cuda_workspace::PartsOfLinearCrossEntropy(p.rows, p.vocabulary, p.width, p.compute,
                                                                  true, p.reduce, chunk)
                            .bytes;
  Numbers workspace(bytes / 4, DType::kF32);
  const Tensor sum = {dweight.data(), p.reduce, 2, {p.vocabulary, p.width}};
  const KernelOperands operands = {
      {{x.data(), p.compute, 2, {p.rows, p.width}},
       {weight.data(), p.compute, 2, {p.vocabulary, p.width}},
       {targets.data(), DType::kI32, 1, {p.rows}},
       p.with_acc ? sum : Tensor{},
       {&dloss_scale, DType::kF32}},
      {{loss.data(), DType::kF32}, {dx.data(), p.compute, 2, {p.rows, p.width}}, sum},
      {workspace.data(), DType::kU8, 1, {bytes}}};
  KernelAttributes attributes;
  attributes.Add("dloss", p.dloss);
  emulation::ReferenceProducts products;
  const DeviceProperties properties;
  std::vector<std::string> notes;
  const KernelOr kernel = MakeLinearCrossEntropyLossGrad({.operands = operands,
                                                          .attributes = attributes,
                                                          .properties = properties,
                                                          .products = products,
                                                          .attention = nullptr,
                                                          .attention_choice = AttentionChoice::kOwn,
                                                          .notes = notes},
                                                         chunk);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok() || static_cast<CudaKernel&>(**kernel).Launch(nullptr) != 0) return {};
  Results results = {loss.at(0), {}, {}};
  for (int64_t i = 0; i < p.rows * p.width; ++i) results.dx.push_back(dx.at(i));
  for (int64_t i = 0; i < p.vocabulary * p.width; ++i) results.dweight.push_back(dweight.at(i));
  return results;
}

// The largest difference beside the largest number.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return largest == 0 ? INFINITY : difference / largest;
}

// Rows do not see their chunk. The sum over rows is made in another order: f32's rounding, or one unit of 16
// bits.
TEST(LinearCrossEntropyChunks, GiveWhatOneChunkGives) {
  constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16;
  for (const auto& [compute, reduce] :
       {std::pair{kF32, kF32}, {kF32, kBF16}, {kBF16, kF32}, {kBF16, kBF16}, {kF16, kF32}, {kF16, kBF16}}) {
    for (bool with_acc : {false, true}) {
      SCOPED_TRACE(testing::Message() << Name(compute) << " to " << Name(reduce) << " acc " << with_acc);
      const Problem p = {600, 77, 24, compute, reduce, with_acc};
      const Results whole = Compute(p, 0), parts = Compute(p, 256);
      EXPECT_EQ(parts.loss, whole.loss);
      EXPECT_GT(whole.loss, 1.0f);
      EXPECT_EQ(parts.dx, whole.dx);
      EXPECT_LT(Distance(parts.dweight, whole.dweight), reduce == kF32 ? 1e-6 : 0x1p-7);
    }
  }
}

// Gradients of f16 against those of f32 at the same numbers. Logits below 8 are off by at most 2^-9 and so
// are logarithms of sums of exponentials: a probability is off by 2^-8 of itself, its gradient by 2^-11 more.
// A column of 133 has a probability of about 1/2 in all rows together, and the largest element of dweight is
// about that of a target, 1: 2^-8 leaves a factor of 2 for columns above the average.
TEST(LinearCrossEntropyScale, NeitherVanishesNorOverflowsBeforeTheResult) {
  for (float scale : {1e-7f, 1.0f, 1e9f}) {
    SCOPED_TRACE(scale);
    // Times 1e9, a gradient of a logit is beyond f16, and so would be dx but for weights of 1e-3.
    Problem p = {64, 133, 40, DType::kF16, DType::kF32, false, 0.5, scale, scale > 1e6f ? 1e-3f : 1.0f};
    const Results f16 = Compute(p, 0);
    p.compute = DType::kF32;
    const Results f32 = Compute(p, 0);
    EXPECT_LT(Distance(f16.dweight, f32.dweight), 0x1p-8);
    if (scale >= 1.0f) {
      EXPECT_LT(Distance(f16.dx, f32.dx), 0x1p-8);
    }
  }
}

TEST(LinearCrossEntropyWorkspace, ChunksOfModels) {
  using cuda_workspace::LogitRows;
  using cuda_workspace::LogitStride;
  EXPECT_EQ(LogitStride(50257, DType::kBF16), 50264);
  EXPECT_EQ(LogitStride(50257, DType::kF32), 50260);
  EXPECT_EQ(LogitStride(50304, DType::kBF16), 50304);
  EXPECT_EQ(LogitRows(64 * 1024, 50257, DType::kBF16), 8192);   // GPT-2: 0.77 GiB
  EXPECT_EQ(LogitRows(32 * 1024, 151936, DType::kBF16), 3328);  // Qwen: 10 chunks of 0.94 GiB
  EXPECT_EQ(LogitRows(1000, 50257, DType::kBF16), 1000);
  EXPECT_EQ(LogitRows(64 * 1024, 256, DType::kBF16), 64 * 1024);
  for (int64_t vocabulary : {2, 1000, 32000, 50257, 151936, 2000003}) {
    for (int64_t rows : {1, 255, 257, 8193, 20000, 1 << 20}) {
      const int64_t chunk = LogitRows(rows, vocabulary, DType::kBF16);
      EXPECT_TRUE(chunk == rows || chunk % 256 == 0);
      EXPECT_LE(chunk, rows);
      if (chunk > 256) {
        EXPECT_LE(chunk * LogitStride(vocabulary, DType::kBF16) * 2, int64_t{1} << 30);
      }
    }
  }
}

}  // namespace
}  // namespace ft::cuda
