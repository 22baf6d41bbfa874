#include <string>
#include <vector>

#include "runtime/backends/cuda/library_error.h"
#include "test/doubles/libraries/fake_cublaslt.h"

namespace ft::cuda {
namespace {

// Every product, done as it was described to cuBLASLt, is what ProductSpec defines. All values are small
// integers: sums are exact in any order.
TEST_F(CublasLtProductsTest, DescribesWhatTheSpecMeans) {
  constexpr int64_t kM = 3, kN = 5, kK = 4;
  Products& products = Open(false, true);
  for (int variant = 0; variant < 32; ++variant) {
    ProductSpec s{.m = kM, .n = kN, .k = kK};
    s.transpose_a = variant & 1;
    s.transpose_b = variant & 2;
    s.accumulate = variant & 4;
    s.bias = variant & 8;
    const int64_t gap = variant & 16 ? 2 : 0;  // elements between rows that belong to nobody
    s.row_a = (s.transpose_a ? kM : kK) + gap;
    s.row_b = (s.transpose_b ? kK : kN) + gap;
    s.row_c = kN + gap;
    std::vector<float> a(64), b(64), c(64, 9.0f), bias(kN);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 11) - 5;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 13) - 6;
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(100 * i);
    std::vector<float> expected = c;
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        float sum = s.accumulate ? c[i * s.row_c + j] : 0.0f;
        for (int64_t k = 0; k < kK; ++k) {
          sum += a[s.transpose_a ? k * s.row_a + i : i * s.row_a + k] *
                 b[s.transpose_b ? j * s.row_b + k : k * s.row_b + j];
        }
        expected[i * s.row_c + j] = sum + (s.bias ? bias[j] : 0.0f);
      }
    }
    const ProductOperands operands = {a.data(), b.data(), c.data(), nullptr, s.bias ? bias.data() : nullptr};
    auto product = products.Create(s, operands, 0);
    ASSERT_TRUE(product.ok()) << product.status();
    EXPECT_EQ((*product)->Launch(operands, nullptr), 0);
    EXPECT_EQ(c, expected) << "variant " << variant;
  }
}

TEST_F(CublasLtProductsTest, SumsInF32AndStoresTheResultsType) {
  Products& products = Open(true, true);
  ASSERT_TRUE(Create(products, Half(DType::kF32)).ok());
  EXPECT_EQ(record_.compute, CUBLAS_COMPUTE_32F);
  int f32 = 0, bf16 = 0;
  for (const auto& [handle, layout] : record_.layouts) {
    f32 += layout.type == CUDA_R_32F;
    bf16 += layout.type == CUDA_R_16BF;
  }
  EXPECT_EQ(f32, 1);
  EXPECT_EQ(bf16, 2);
  ProductSpec biased = Half(DType::kBF16);
  biased.bias = true;
  ASSERT_TRUE(Create(products, biased).ok());
  EXPECT_EQ(Value<int32_t>(record_.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), CUDA_R_16BF);
}

TEST_F(CublasLtProductsTest, RoundsToTf32OnlyWhereAllowed) {
  const ProductSpec spec{.m = 2, .n = 3, .k = 4, .row_a = 4, .row_b = 3, .row_c = 3};
  ASSERT_TRUE(Create(Open(false, true), spec).ok());
  EXPECT_EQ(record_.compute, CUBLAS_COMPUTE_32F);
  ASSERT_TRUE(Create(Open(true, true), spec).ok());
  EXPECT_EQ(record_.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
}

TEST_F(CublasLtProductsTest, SaysWhatAlgorithmsMayRelyOn) {
  ASSERT_TRUE(Create(Open(false, true), Half(DType::kBF16), 4096 + 2, 4096 + 48, 8192 + 128, 777).ok());
  EXPECT_EQ(Value<uint32_t>(record_.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES), 16u);  // b
  EXPECT_EQ(Value<uint32_t>(record_.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES), 2u);   // a
  EXPECT_EQ(Value<uint32_t>(record_.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES), 128u);
  EXPECT_EQ(Value<uint32_t>(record_.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES), 128u);
  EXPECT_EQ(Value<uint64_t>(record_.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES), 777u);
  EXPECT_EQ(Value<uint32_t>(record_.preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK),
            uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
}

// Heuristics look at how the address of the bias is aligned.
TEST_F(CublasLtProductsTest, SaysHowABiasIsAligned) {
  ProductSpec spec = Half(DType::kBF16);
  spec.bias = true;
  ASSERT_TRUE(Create(Open(false, true), spec).ok());
  EXPECT_EQ(Value<uintptr_t>(record_.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER), 16u);
}

TEST_F(CublasLtProductsTest, TimesProposalsAndTakesTheFastest) {
  record_.proposals = {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS};
  auto product = Create(Open(false, false), Half(DType::kBF16));
  ASSERT_TRUE(product.ok()) << product.status();
  record_.algorithms.clear();
  EXPECT_EQ((*product)->Launch({}, nullptr), 0);
  EXPECT_EQ(record_.algorithms, std::vector<uint64_t>{1});
}

TEST_F(CublasLtProductsTest, LeavesOutAlgorithmsThatCannotRun) {
  record_.proposals = {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS};
  record_.failing = 1;
  auto product = Create(Open(false, false), Half(DType::kBF16));
  ASSERT_TRUE(product.ok()) << product.status();
  record_.algorithms.clear();
  EXPECT_EQ((*product)->Launch({}, nullptr), 0);
  EXPECT_EQ(record_.algorithms, std::vector<uint64_t>{2});
}

TEST_F(CublasLtProductsTest, TakesTheFirstProposalWithoutTimingWhenDeterministic) {
  record_.proposals = {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS};
  auto product = Create(Open(false, true), Half(DType::kBF16));
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_TRUE(record_.algorithms.empty());
  EXPECT_EQ((*product)->Launch({}, nullptr), 0);
  EXPECT_EQ(record_.algorithms, std::vector<uint64_t>{1});
}

TEST_F(CublasLtProductsTest, EqualSpecsShareAProduct) {
  record_.proposals = {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS};
  Products& products = Open(false, false);
  auto first = Create(products, Half(DType::kBF16));
  const size_t timed = record_.algorithms.size();
  auto second = Create(products, Half(DType::kBF16), 8192, 16384, 256);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(record_.algorithms.size(), timed);
  EXPECT_NE(*first, *Create(products, Half(DType::kBF16), 4096 + 16));
  EXPECT_NE(*first, *Create(products, Half(DType::kF32)));
}

TEST_F(CublasLtProductsTest, RefusesWhatThereIsNoProductOf) {
  Products& products = Open(false, true);
  const auto refused = [&](ProductSpec spec) {
    return Create(products, spec).status().code() == absl::StatusCode::kInvalidArgument;
  };
  ProductSpec spec = Half(DType::kBF16);
  EXPECT_FALSE(refused(spec));
  spec.output = DType::kF16;
  EXPECT_TRUE(refused(spec));
  spec = Half(DType::kF32);
  spec.bias = true;
  EXPECT_TRUE(refused(spec));
  spec = Half(DType::kBF16);
  spec.k = 0;
  EXPECT_TRUE(refused(spec));
  spec = Half(DType::kBF16);
  spec.row_b = 2;
  EXPECT_TRUE(refused(spec));
  spec = Half(DType::kBF16);
  spec.input = spec.output = DType::kI32;
  EXPECT_TRUE(refused(spec));
  // It would round before it adds the bias.
  spec = Half(DType::kBF16);
  spec.bias = true;
  EXPECT_FALSE(refused(spec));
  for (int64_t ProductSpec::* row : {&ProductSpec::row_a, &ProductSpec::row_b, &ProductSpec::row_c}) {
    ProductSpec odd = spec;
    odd.*row = 12;
    EXPECT_TRUE(refused(odd));
    odd.bias = false;
    EXPECT_FALSE(refused(odd));
  }
  EXPECT_TRUE(Create(products, spec, 4096 + 16).ok());
  EXPECT_FALSE(Create(products, spec, 4096 + 8).ok());
  record_.proposals = {};
  EXPECT_EQ(Create(products, Half(DType::kF32)).status(),
            absl::InvalidArgumentError("product [2, 4] x [4, 3] of bf16 into f32: "
                                       "cublasLtMatmulAlgoGetHeuristic failed: the reason"));
}

TEST_F(CublasLtProductsTest, ReportsALaunchThatFails) {
  record_.failing = 0;
  auto product = Create(Open(false, true), Half(DType::kBF16));
  ASSERT_TRUE(product.ok()) << product.status();
  const int error = (*product)->Launch({}, nullptr);
  EXPECT_EQ(DescribeLibraryError(error), "cublasLtMatmul returned cublasStatus_t 13");
  EXPECT_EQ(DescribeLibraryError(cudaErrorLaunchFailure), "");
}

}  // namespace
}  // namespace ft::cuda
