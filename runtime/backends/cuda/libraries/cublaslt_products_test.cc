#include "runtime/backends/cuda/libraries/cublaslt_products.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cuda/device/testing/scripted_driver.h"
#include "runtime/backends/cuda/libraries/cublaslt_api.h"

namespace ft::cuda {
namespace {

// What was asked of cuBLASLt. Its functions here record, and compute products of f32 as its documentation
// defines them: column-major, element by element.
struct Record {
  struct Layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t stride;
  };
  std::map<cublasLtMatrixLayout_t, Layout> layouts;
  std::map<cublasLtMatmulDescAttributes_t, std::string> operation;
  std::map<cublasLtMatmulPreferenceAttributes_t, std::string> preference;
  cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
  std::vector<cublasStatus_t> proposals = {CUBLAS_STATUS_SUCCESS};  // one algorithm for each
  std::vector<uint64_t> algorithms;                                 // as they ran
  uint64_t failing = ~uint64_t{0};                                  // the algorithm that cannot run
  int open = 0;  // descriptors and handles that are not destroyed
};
Record* record = nullptr;

template <typename T, typename Map, typename Key>
T Value(const Map& map, Key key) {
  T value = {};
  const auto found = map.find(key);
  if (found == map.end() || found->second.size() != sizeof(T)) {
    ADD_FAILURE() << "attribute " << static_cast<int>(key) << " is missing or of another size";
    return value;
  }
  std::memcpy(&value, found->second.data(), sizeof(T));
  return value;
}

float At(const Record::Layout& layout, const void* data, bool transposed, uint64_t row, uint64_t column) {
  if (transposed) std::swap(row, column);
  EXPECT_LT(row, layout.rows);
  EXPECT_LT(column, layout.columns);
  return static_cast<const float*>(data)[row + column * layout.stride];
}

void Multiply(const void* a, const Record::Layout& la, const void* b, const Record::Layout& lb, float beta,
              float* d, const Record::Layout& ld) {
  const bool ta = Value<int32_t>(record->operation, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  const bool tb = Value<int32_t>(record->operation, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  const bool biased =
      Value<uint32_t>(record->operation, CUBLASLT_MATMUL_DESC_EPILOGUE) == CUBLASLT_EPILOGUE_BIAS;
  const float* bias = nullptr;
  if (biased) bias = Value<const float*>(record->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  const uint64_t depth = ta ? la.rows : la.columns;
  ASSERT_EQ(ta ? la.columns : la.rows, ld.rows);
  ASSERT_EQ(tb ? lb.columns : lb.rows, depth);
  ASSERT_EQ(tb ? lb.rows : lb.columns, ld.columns);
  for (uint64_t row = 0; row < ld.rows; ++row) {
    for (uint64_t column = 0; column < ld.columns; ++column) {
      float& element = d[row + column * ld.stride];
      float sum = beta == 0.0f ? 0.0f : beta * element;
      for (uint64_t i = 0; i < depth; ++i) sum += At(la, a, ta, row, i) * At(lb, b, tb, i, column);
      element = sum + (biased ? bias[row] : 0.0f);
    }
  }
}

CublasLtApi FakeApi() {
  CublasLtApi api;
  api.get_status_string = [](cublasStatus_t) -> const char* { return "the reason"; };
  api.create = [](cublasLtHandle_t* handle) {
    ++record->open;
    *handle = reinterpret_cast<cublasLtHandle_t>(record);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.destroy = [](cublasLtHandle_t) {
    --record->open;
    return CUBLAS_STATUS_SUCCESS;
  };
  api.create_layout = [](cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows, uint64_t columns,
                         int64_t stride) {
    ++record->open;
    *layout = new cublasLtMatrixLayoutOpaque_t();
    record->layouts[*layout] = {type, rows, columns, stride};
    return CUBLAS_STATUS_SUCCESS;
  };
  api.destroy_layout = [](cublasLtMatrixLayout_t layout) {
    --record->open;
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
  };
  api.create_operation = [](cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                            cudaDataType_t scale) {
    ++record->open;
    EXPECT_EQ(scale, CUDA_R_32F);
    record->compute = compute;
    *operation = new cublasLtMatmulDescOpaque_t();
    return CUBLAS_STATUS_SUCCESS;
  };
  api.destroy_operation = [](cublasLtMatmulDesc_t operation) {
    --record->open;
    delete operation;
    return CUBLAS_STATUS_SUCCESS;
  };
  api.set_operation = [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t attribute, const void* value,
                         size_t bytes) {
    record->operation[attribute] = std::string(static_cast<const char*>(value), bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.create_preference = [](cublasLtMatmulPreference_t* preference) {
    ++record->open;
    *preference = new cublasLtMatmulPreferenceOpaque_t();
    return CUBLAS_STATUS_SUCCESS;
  };
  api.destroy_preference = [](cublasLtMatmulPreference_t preference) {
    --record->open;
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
  };
  api.set_preference = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t attribute,
                          const void* value, size_t bytes) {
    record->preference[attribute] = std::string(static_cast<const char*>(value), bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.get_heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t, int wanted, cublasLtMatmulHeuristicResult_t* results,
                         int* found) {
    EXPECT_EQ(c, d);
    *found = std::min<int>(wanted, static_cast<int>(record->proposals.size()));
    for (int i = 0; i < *found; ++i) {
      results[i] = {};
      results[i].algo.data[0] = static_cast<uint64_t>(i);
      results[i].state = record->proposals[i];
    }
    return *found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  };
  api.matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t, const void* alpha, const void* a,
                  cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb, const void* beta,
                  const void* c, cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                  const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t) {
    EXPECT_EQ(*static_cast<const float*>(alpha), 1.0f);
    EXPECT_EQ(c, d);
    EXPECT_EQ(lc, ld);
    record->algorithms.push_back(algorithm->data[0]);
    if (algorithm->data[0] == record->failing) return CUBLAS_STATUS_EXECUTION_FAILED;
    const auto& layouts = record->layouts;
    if (layouts.at(ld).type == CUDA_R_32F && layouts.at(la).type == CUDA_R_32F) {
      Multiply(a, layouts.at(la), b, layouts.at(lb), *static_cast<const float*>(beta), static_cast<float*>(d),
               layouts.at(ld));
    }
    return CUBLAS_STATUS_SUCCESS;
  };
  return api;
}

// Time passes as algorithm i says, times_[i] for each run of it.
class FakeDriver final : public ScriptedDriver {
 public:
  explicit FakeDriver(std::vector<float> times) : ScriptedDriver(nullptr), times_(std::move(times)) {}
  int open = 0;

  absl::StatusOr<StreamHandle> CreateStream(bool) override {
    ++open;
    return reinterpret_cast<StreamHandle>(this);
  }
  absl::Status DestroyStream(StreamHandle) override {
    --open;
    return absl::OkStatus();
  }
  absl::Status Synchronize(StreamHandle) override { return absl::OkStatus(); }
  absl::StatusOr<EventHandle> CreateEvent(bool timing) override {
    EXPECT_TRUE(timing);
    return reinterpret_cast<EventHandle>(uintptr_t{8} + static_cast<uintptr_t>(++open));
  }
  absl::Status DestroyEvent(EventHandle) override {
    --open;
    return absl::OkStatus();
  }
  absl::Status Record(EventHandle event, StreamHandle) override {
    at_[event] = record->algorithms.size();
    return absl::OkStatus();
  }
  absl::StatusOr<float> Elapsed(EventHandle begin, EventHandle end) override {
    float sum = 0;
    for (size_t i = at_[begin]; i < at_[end]; ++i) sum += times_[record->algorithms[i]];
    return sum;
  }

 private:
  std::vector<float> times_;
  std::map<EventHandle, size_t> at_;
};

class CublasLtProductsTest : public testing::Test {
 protected:
  CublasLtProductsTest() { record = &record_; }
  ~CublasLtProductsTest() override {
    products_.clear();
    EXPECT_EQ(record_.open, 0) << "descriptors or handles that were not destroyed";
    EXPECT_EQ(driver_.open, 0) << "streams or events that were not destroyed";
    record = nullptr;
  }

  Products& Open(bool allow_tf32, bool deterministic) {
    auto products = CreateCublasLtProducts(FakeApi(), driver_, allow_tf32, deterministic);
    EXPECT_TRUE(products.ok()) << products.status();
    products_.push_back(std::move(*products));
    return *products_.back();
  }
  // On addresses that are only looked at.
  static absl::StatusOr<std::shared_ptr<Product>> Create(Products& products, const ProductSpec& spec,
                                                         uintptr_t a = 4096, uintptr_t b = 4096,
                                                         uintptr_t c = 4096,
                                                         uint64_t workspace_bytes = 1024) {
    return products.Create(spec, reinterpret_cast<void*>(a), reinterpret_cast<void*>(b),
                           reinterpret_cast<void*>(c), nullptr, workspace_bytes);
  }
  static ProductSpec Half(DType output) {
    return {
        .m = 2, .n = 3, .k = 4, .row_a = 4, .row_b = 3, .row_c = 3, .input = DType::kBF16, .output = output};
  }

  Record record_;
  FakeDriver driver_{{3.0f, 1.0f, 2.0f}};
  std::vector<std::unique_ptr<Products>> products_;
};

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
    auto product = products.Create(s, a.data(), b.data(), c.data(), nullptr, 0);
    ASSERT_TRUE(product.ok()) << product.status();
    EXPECT_EQ(
        (*product)->Launch(a.data(), b.data(), c.data(), s.bias ? bias.data() : nullptr, nullptr, nullptr),
        0);
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
  EXPECT_EQ((*product)->Launch(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(record_.algorithms, std::vector<uint64_t>{1});
}

TEST_F(CublasLtProductsTest, LeavesOutAlgorithmsThatCannotRun) {
  record_.proposals = {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS};
  record_.failing = 1;
  auto product = Create(Open(false, false), Half(DType::kBF16));
  ASSERT_TRUE(product.ok()) << product.status();
  record_.algorithms.clear();
  EXPECT_EQ((*product)->Launch(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(record_.algorithms, std::vector<uint64_t>{2});
}

TEST_F(CublasLtProductsTest, TakesTheFirstProposalWithoutTimingWhenDeterministic) {
  record_.proposals = {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS};
  auto product = Create(Open(false, true), Half(DType::kBF16));
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_TRUE(record_.algorithms.empty());
  EXPECT_EQ((*product)->Launch(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), 0);
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
  record_.proposals = {};
  EXPECT_EQ(Create(products, Half(DType::kF32)).status(),
            absl::InvalidArgumentError("product [2, 4] x [4, 3] of bf16 into f32: "
                                       "cublasLtMatmulAlgoGetHeuristic failed: the reason"));
}

TEST_F(CublasLtProductsTest, ReportsALaunchThatFails) {
  record_.failing = 0;
  auto product = Create(Open(false, true), Half(DType::kBF16));
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ((*product)->Launch(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), cudaErrorLaunchFailure);
}

}  // namespace
}  // namespace ft::cuda
