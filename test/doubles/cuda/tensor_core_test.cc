// The stand-in for tensor cores against plain products, with operands laid as kernels lay them, and what it
// reports of misuse.
#include "runtime/backends/cuda/device_code/tensor_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "test/doubles/cuda/launch.h"

namespace ft::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRows = 16, kDepth = 16, kColumns = 16, kStride = 24;  // elements between rows

// product [16, 16] = a [16, 16] b, b [16, 16] or, `by_columns`, b transposed.
template <typename T>
__global__ void Multiply(const T* a, const T* b, float* product, bool by_columns) {
  T* shared_a = DynamicShared<T>();
  T* shared_b = shared_a + kRows * kStride;
  const int lane = static_cast<int>(threadIdx.x), row = lane % 16, part = lane / 16 * 8;
  BeginCopy(shared_a + row * kStride + part, a + row * kDepth + part, true);
  BeginCopy(shared_b + row * kStride + part, b + row * kColumns + part, true);
  FinishCopies();
  __syncthreads();
  uint32_t left[4], right[4];
  LoadMatrices(shared_a + lane % 16 * kStride + lane / 16 * 8, left);
  if (by_columns) {
    LoadMatrices(shared_b + (lane % 8 + lane / 16 * 8) * kStride + lane / 8 % 2 * 8, right);
  } else {
    LoadTransposed(shared_b + lane % 16 * kStride + lane / 16 * 8, right);
  }
  for (int half = 0; half < 2; ++half) {
    float sums[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    MultiplyAdd<T>(sums, left, right[2 * half], right[2 * half + 1]);
    for (int e = 0; e < 4; ++e)
      product[(lane / 4 + e / 2 * 8) * kColumns + 8 * half + lane % 4 * 2 + e % 2] = sums[e];
  }
}

template <typename T>
class TensorCore : public testing::Test {};
using Types = testing::Types<BF16, F16>;
TYPED_TEST_SUITE(TensorCore, Types);

TYPED_TEST(TensorCore, MultipliesWhatItWasGiven) {
  using T = TypeParam;
  struct alignas(16) Matrix {
    T at[256];
  };
  Matrix a, b;
  for (int i = 0; i < 256; ++i) {
    a.at[i] = FromFloat<T>(static_cast<float>(i * 7 % 31 - 15));
    b.at[i] = FromFloat<T>(static_cast<float>(i * 5 % 29 - 14));
  }
  for (const bool by_columns : {false, true}) {
    std::vector<float> product(256);
    const LaunchShape shape = {.block_x = 32, .shared_bytes = 2 * kRows * kStride * sizeof(T)};
    ASSERT_EQ(Launch(Multiply<T>, shape, nullptr, a.at, b.at, product.data(), by_columns), 0)
        << emulation::LastMessage();
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kColumns; ++j) {
        float sum = 1.0f;  // integers: exact in any order
        for (int k = 0; k < kDepth; ++k)
          sum +=
              ToFloat(a.at[i * kDepth + k]) * ToFloat(b.at[by_columns ? j * kDepth + k : k * kColumns + j]);
        EXPECT_EQ(product[i * kColumns + j], sum) << i << ", " << j;
      }
    }
  }
}

enum class Misuse { kUnalignedRow, kUnalignedCopy, kHalfAWarp };

__global__ void Misused(Misuse misuse) {
  BF16* shared = DynamicShared<BF16>();
  uint32_t words[4];
  const int lane = static_cast<int>(threadIdx.x);
  if (misuse == Misuse::kUnalignedCopy) BeginCopy(shared + 4, shared, false);
  if (misuse == Misuse::kHalfAWarp && lane >= 16) return;
  LoadMatrices(shared + (misuse == Misuse::kUnalignedRow ? 4 : 8) * lane, words);
}

TEST(TensorCoreDouble, ReportsMisuse) {
  const auto problem = [](Misuse misuse) {
    return Launch(Misused, {.block_x = 32, .shared_bytes = 1024}, nullptr, misuse) == 0
               ? ""
               : emulation::LastMessage();
  };
  EXPECT_THAT(problem(Misuse::kUnalignedRow), HasSubstr("a row of a matrix is no multiple of 16 bytes"));
  EXPECT_THAT(problem(Misuse::kUnalignedCopy), HasSubstr("where a copy goes is no multiple of 16 bytes"));
  EXPECT_THAT(problem(Misuse::kHalfAWarp),
              AllOf(HasSubstr("wait for each other in vain"), HasSubstr("at a load of matrices of mask")));
}

TEST(TensorCoreDouble, CopiesZerosForWhatIsNotThere) {
  struct alignas(16) Words {
    uint16_t at[8];
  };
  Words from = {{1, 2, 3, 4, 5, 6, 7, 8}}, to = {};
  BeginCopy(&to, &from, true);
  EXPECT_EQ(to.at[7], 8);
  BeginCopy(&to, &from, false);
  for (const uint16_t word : to.at) EXPECT_EQ(word, 0);
}

}  // namespace
}  // namespace ft::cuda
