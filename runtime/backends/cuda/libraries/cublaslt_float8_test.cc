#include <string>
#include <vector>

#include "runtime/backends/cuda/libraries/cublaslt_products_call.h"
#include "test/doubles/libraries/fake_cublaslt.h"

namespace ft::cuda {
namespace {

ProductSpec Of(Float8Product float8) {
  ProductSpec spec{.m = 5, .n = 16, .k = 256, .transpose_b = true, .row_a = 256, .row_b = 256, .row_c = 16};
  spec.input = spec.output = DType::kBF16;
  spec.float8 = float8;
  return spec;
}

constexpr Float8Product kForward = {};
constexpr Float8Product kBackward = {.a = Float8::kE5M2, .b = Float8::kE4M3};
constexpr Float8Product kWeight = {.scale_a = ScaleOf::kVectors, .scale_b = ScaleOf::kSquares};

// Our b is its A: transposed, as tensor cores want floats of 8 bits.
TEST_F(CublasLtProductsTest, DescribesFloatsOf8Bits) {
  Products& products = Open(false, true);
  auto product = Create(products, Of(kBackward));
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(Value<int32_t>(record_.operation, CUBLASLT_MATMUL_DESC_TRANSA), CUBLAS_OP_T);
  EXPECT_EQ(Value<int32_t>(record_.operation, CUBLASLT_MATMUL_DESC_TRANSB), CUBLAS_OP_N);
  EXPECT_EQ(Value<uintptr_t>(record_.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER), 16u);
  std::vector<std::string> layouts;
  for (const auto& [handle, layout] : record_.layouts)
    layouts.push_back(std::to_string(layout.type) + ": " + std::to_string(layout.rows) + "x" +
                      std::to_string(layout.columns) + "/" + std::to_string(layout.stride));
  const auto text = [](cudaDataType_t type, const char* rest) { return std::to_string(type) + rest; };
  EXPECT_EQ(std::count(layouts.begin(), layouts.end(), text(CUDA_R_8F_E4M3, ": 256x16/256")), 1);
  EXPECT_EQ(std::count(layouts.begin(), layouts.end(), text(CUDA_R_8F_E5M2, ": 256x5/256")), 1);
  EXPECT_EQ(std::count(layouts.begin(), layouts.end(), text(CUDA_R_16BF, ": 16x5/16")), 1);
  float scales[2];
  char memory[3];
  ProductOperands operands = {memory, memory + 1, memory + 2};
  operands.scale_a = scales;
  operands.scale_b = scales + 1;
  EXPECT_EQ((*product)->Launch(operands, nullptr), 0);
  EXPECT_EQ(Value<const float*>(record_.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER), scales + 1);
  EXPECT_EQ(Value<const float*>(record_.operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER), scales);
}

// Sums of forward may have fewer bits; not those of gradients, nor where each block has a scale.
TEST_F(CublasLtProductsTest, SaysHowFloatsOf8BitsAreScaledAndSummed) {
  Products& products = Open(false, true);
  const auto is_fast = [&](const Float8Product& float8) {
    record_.operation.clear();
    EXPECT_TRUE(Create(products, Of(float8)).ok());
    return Value<int8_t>(record_.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM) != 0;
  };
  EXPECT_TRUE(is_fast(kForward));
  EXPECT_FALSE(is_fast(kBackward));
  EXPECT_FALSE(record_.operation.contains(CUBLASLT_MATMUL_DESC_A_SCALE_MODE)) << "versions before 12.8";
  EXPECT_FALSE(is_fast(kWeight));
  EXPECT_EQ(Value<int32_t>(record_.operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE),
            int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F});
  EXPECT_EQ(Value<int32_t>(record_.operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE),
            int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F});
}

TEST_F(CublasLtProductsTest, RefusesFloatsOf8BitsThatThereAreNoProductsOf) {
  Products& products = Open(false, true);
  const auto refused = [&](auto change) {
    ProductSpec spec = Of(kWeight);
    change(spec);
    return absl::IsInvalidArgument(Create(products, spec).status());
  };
  EXPECT_FALSE(refused([](ProductSpec&) {}));
  EXPECT_FALSE(refused([](ProductSpec& s) { s.output = DType::kF32; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.input = s.output = DType::kF16; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.n = s.row_c = 24; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.k = 192; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.row_a = 264; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.transpose_b = false; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.float8->a = s.float8->b = Float8::kE5M2; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.float8->scale_a = ScaleOf::kSquares; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.float8->scale_b = ScaleOf::kTensor; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.epilogue = Epilogue::kGelu; }));
}

TEST_F(CublasLtProductsTest, SaysThatAProductOfFloatsOf8BitsIsRefused) {
  record_.proposals = {};
  EXPECT_EQ(Create(Open(false, true), Of(kForward)).status(),
            absl::InvalidArgumentError("product [5, 256] x [256, 16] of fp8 into bf16: "
                                       "cublasLtMatmulAlgoGetHeuristic failed: the reason"));
}

// The library itself takes our descriptions; it needs no device for that.
TEST(CublasLtTest, TakesDescriptionsOfFloatsOf8Bits) {
  const absl::StatusOr<CublasLtApi> api = LoadCublasLt();
  if (!api.ok()) GTEST_SKIP() << "skipped: " << api.status().message();
  for (const Float8Product& float8 : {kForward, kBackward, kWeight}) {
    ProductSpec spec = Of(float8);
    spec.bias = true;
    const auto call = CublasLtCall::Create(*api, spec, false);
    EXPECT_TRUE(call.ok()) << call.status();
  }
}

}  // namespace
}  // namespace ft::cuda
