#include "runtime/backends/cuda/libraries/cublaslt_products_call.h"

#include "gtest/gtest.h"

namespace ft::cuda {
namespace {

// The library itself takes our descriptions; it needs no device for that.
TEST(CublasLtTest, TakesDescriptions) {
  const absl::StatusOr<CublasLtApi> api = LoadCublasLt();
  if (!api.ok()) GTEST_SKIP() << "skipped: " << api.status().message();
  for (const DType input : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const bool bias : {false, true}) {
      ProductSpec spec{.m = 2, .n = 3, .k = 4, .transpose_a = true, .row_a = 2, .row_b = 3, .row_c = 3};
      spec.input = spec.output = input;
      spec.bias = bias;
      const auto call = CublasLtCall::Create(*api, spec, true);
      EXPECT_TRUE(call.ok()) << call.status();
    }
  }
}

TEST(CublasLtTest, TakesDescriptionsOfEpilogues) {
  const absl::StatusOr<CublasLtApi> api = LoadCublasLt();
  if (!api.ok()) GTEST_SKIP() << "skipped: " << api.status().message();
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const Epilogue epilogue : {Epilogue::kGelu, Epilogue::kGeluGrad}) {
      ProductSpec spec{.m = 2, .n = 8, .k = 4, .row_a = 4, .row_b = 8, .row_c = 8};
      spec.input = spec.output = dtype;
      spec.bias = epilogue == Epilogue::kGelu;
      spec.epilogue = epilogue;
      spec.auxiliary = true;
      const auto call = CublasLtCall::Create(*api, spec, false);
      EXPECT_TRUE(call.ok()) << call.status();
    }
  }
}

}  // namespace
}  // namespace ft::cuda
