#include <string>
#include <vector>

#include "test/doubles/libraries/fake_cublaslt.h"

namespace ft::cuda {
namespace {

// Kinds of epilogue; the addresses are those of the run.
TEST_F(CublasLtProductsTest, DescribesEpilogues) {
  Products& products = Open(false, true);
  ProductSpec spec{.m = 2, .n = 8, .k = 4, .row_a = 8, .row_b = 8, .row_c = 16};
  spec.input = spec.output = DType::kBF16;
  char memory[6];
  const ProductOperands operands = {memory, memory + 1, memory + 2, memory + 3, memory + 4, memory + 5};
  const auto described = [&](bool bias, bool auxiliary, Epilogue epilogue) {
    spec.bias = bias;
    spec.auxiliary = auxiliary;
    spec.epilogue = epilogue;
    auto product = Create(products, spec);
    EXPECT_TRUE(product.ok()) << product.status();
    const uint32_t kind = Value<uint32_t>(record_.operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
    if (auxiliary) {
      EXPECT_EQ(Value<int64_t>(record_.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD), 16);
      EXPECT_EQ(Value<uintptr_t>(record_.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), 16u);
      EXPECT_EQ((*product)->Launch(operands, nullptr), 0);
      EXPECT_EQ(Value<char*>(record_.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), memory + 5);
    }
    return kind;
  };
  EXPECT_EQ(described(false, false, Epilogue::kGelu), uint32_t{CUBLASLT_EPILOGUE_GELU});
  EXPECT_EQ(described(true, false, Epilogue::kGelu), uint32_t{CUBLASLT_EPILOGUE_GELU_BIAS});
  EXPECT_EQ(described(false, true, Epilogue::kGelu), uint32_t{CUBLASLT_EPILOGUE_GELU_AUX});
  EXPECT_EQ(described(true, true, Epilogue::kGelu), uint32_t{CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
  EXPECT_EQ(Value<char*>(record_.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER), memory + 4);
  EXPECT_EQ(described(false, true, Epilogue::kGeluGrad), uint32_t{CUBLASLT_EPILOGUE_DGELU});
}

// Our a is its B. The sums are of the result's type.
TEST_F(CublasLtProductsTest, DescribesSums) {
  Products& products = Open(false, true);
  ProductSpec spec{.m = 2, .n = 8, .k = 4, .transpose_a = true, .row_a = 2, .row_b = 8, .row_c = 8};
  spec.input = DType::kBF16;
  char memory[5];
  ProductOperands operands = {memory, memory + 1, memory + 2, memory + 3};
  operands.sums = memory + 4;
  for (const auto& [epilogue, kind] : {std::pair(Epilogue::kSumsOfA, CUBLASLT_EPILOGUE_BGRADB),
                                       std::pair(Epilogue::kSumsOfB, CUBLASLT_EPILOGUE_BGRADA)}) {
    spec.epilogue = epilogue;
    auto product = Create(products, spec);
    ASSERT_TRUE(product.ok()) << product.status();
    EXPECT_EQ(Value<uint32_t>(record_.operation, CUBLASLT_MATMUL_DESC_EPILOGUE), uint32_t{kind});
    EXPECT_EQ(Value<int32_t>(record_.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), int32_t{CUDA_R_32F});
    EXPECT_EQ((*product)->Launch(operands, nullptr), 0);
    EXPECT_EQ(Value<char*>(record_.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER), memory + 4);
  }
  const auto refused = [&](auto change) {
    ProductSpec changed = spec;
    change(changed);
    return absl::IsInvalidArgument(Create(products, changed).status());
  };
  EXPECT_TRUE(refused([](ProductSpec& s) { s.auxiliary = true; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.accumulate = true; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.output = DType::kBF16, s.bias = true; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.input = DType::kF32; }));
}

TEST_F(CublasLtProductsTest, RefusesEpiloguesThatThereAreNot) {
  Products& products = Open(false, true);
  ProductSpec gradient{.m = 2, .n = 8, .k = 4, .row_a = 4, .row_b = 8, .row_c = 8};
  gradient.input = gradient.output = DType::kBF16;
  gradient.epilogue = Epilogue::kGeluGrad;
  gradient.auxiliary = true;
  EXPECT_TRUE(Create(products, gradient).ok());
  const auto refused = [&](auto change) {
    ProductSpec spec = gradient;
    change(spec);
    return absl::IsInvalidArgument(Create(products, spec).status());
  };
  EXPECT_TRUE(refused([](ProductSpec& s) { s.auxiliary = false; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.epilogue = Epilogue::kNone; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.bias = true; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.accumulate = true; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.row_c = 12; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.output = DType::kF32; }));
  EXPECT_TRUE(refused([](ProductSpec& s) { s.input = s.output = DType::kF32; }));
}

class CublasLtFuseTest : public CublasLtProductsTest {
 protected:
  CublasLtFuseTest() {
    spec_.m = 2;
    spec_.n = spec_.row_b = spec_.row_c = 8;
    spec_.k = spec_.row_a = 4;
    spec_.input = spec_.output = DType::kBF16;
    spec_.epilogue = Epilogue::kGelu;
  }

  // With `apart` as slow as algorithm `as`.
  absl::StatusOr<std::shared_ptr<Product>> Fuse(Products& products, uint64_t as) {
    return products.Fuse(spec_, {}, 0, [&](StreamHandle) {
      ++runs_apart_;
      record_.algorithms.push_back(as);
      return 0;
    });
  }

  ProductSpec spec_;
  int runs_apart_ = 0;
};

TEST_F(CublasLtFuseTest, WhereTheEpilogueIsFaster) {
  auto product = Fuse(Open(false, false), /*as=*/1);  // 1 ms, against 3
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(*product, nullptr);
  record_.proposals.assign(2, CUBLAS_STATUS_SUCCESS);
  product = Fuse(Open(false, false), /*as=*/2);  // 2 ms, against the faster of 3 and 1
  ASSERT_TRUE(product.ok()) << product.status();
  ASSERT_NE(*product, nullptr);
  record_.algorithms.clear();
  EXPECT_EQ((*product)->Launch({}, nullptr), 0);
  EXPECT_EQ(record_.algorithms, std::vector<uint64_t>{1});
}

TEST_F(CublasLtFuseTest, OneAnswerForASpec) {
  Products& products = Open(false, false);
  auto first = Fuse(products, 1);
  const int runs = runs_apart_;
  EXPECT_GT(runs, 0);
  auto again = Fuse(products, 0);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(runs_apart_, runs);
}

TEST_F(CublasLtFuseTest, NothingThatTimingsDecideWhenDeterministic) {
  auto product = Fuse(Open(false, true), 0);
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(*product, nullptr);
  EXPECT_EQ(runs_apart_, 0);
}

TEST_F(CublasLtFuseTest, NothingWhereTheLibraryRefusesOrFails) {
  Products& products = Open(false, false);
  record_.proposals = {};
  auto refused = Fuse(products, 0);
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(*refused, nullptr);
  record_.proposals = {CUBLAS_STATUS_SUCCESS};
  record_.failing = 0;
  spec_.m = 3;
  auto failing = Fuse(products, 1);
  ASSERT_TRUE(failing.ok()) << failing.status();
  EXPECT_EQ(*failing, nullptr);
}

}  // namespace
}  // namespace ft::cuda
