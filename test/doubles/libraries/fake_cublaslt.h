// cuBLASLt as tests have it, and the fixture of its products' tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cuda/libraries/cublaslt_api.h"
#include "runtime/backends/cuda/libraries/cublaslt_products.h"
#include "test/doubles/cuda/no_driver.h"

namespace ft::cuda {

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
  int open = 0;                  // descriptors and handles that are not destroyed
  std::function<void()> on_run;  // before each algorithm runs; may be empty
};
inline Record* record = nullptr;

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

inline float At(const Record::Layout& layout, const void* data, bool transposed, uint64_t row,
                uint64_t column) {
  if (transposed) std::swap(row, column);
  EXPECT_LT(row, layout.rows);
  EXPECT_LT(column, layout.columns);
  return static_cast<const float*>(data)[row + column * layout.stride];
}

inline void Multiply(const void* a, const Record::Layout& la, const void* b, const Record::Layout& lb,
                     float beta, float* d, const Record::Layout& ld) {
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

inline CublasLtApi FakeApi() {
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
    if (record->on_run) record->on_run();
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

// Time passes as algorithm i says, times_[i] for each run of it. Memory is the host's, where there is any.
class FakeDriver final : public NoDriver {
 public:
  explicit FakeDriver(std::vector<float> times) : times_(std::move(times)) {}
  int open = 0;
  bool memory = false;  // addresses are those of memory; else they are only looked at

  absl::Status Zero(void* data, uint64_t bytes) override {
    if (memory) std::memset(data, 0, bytes);
    return absl::OkStatus();
  }
  absl::Status Copy(void* dst, const void* src, uint64_t bytes) override {
    if (memory) std::memcpy(dst, src, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyAsync(void* dst, const void* src, uint64_t bytes, StreamHandle stream) override {
    EXPECT_EQ(stream, reinterpret_cast<StreamHandle>(this)) << "not the stream that is timed";
    return Copy(dst, src, bytes);
  }

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
    const ProductOperands operands = {reinterpret_cast<void*>(a), reinterpret_cast<void*>(b),
                                      reinterpret_cast<void*>(c)};
    return products.Create(spec, operands, workspace_bytes);
  }
  static ProductSpec Half(DType output) {
    return {
        .m = 2, .n = 3, .k = 4, .row_a = 8, .row_b = 8, .row_c = 8, .input = DType::kBF16, .output = output};
  }

  Record record_;
  FakeDriver driver_{{3.0f, 1.0f, 2.0f}};
  std::vector<std::unique_ptr<Products>> products_;
};

}  // namespace ft::cuda
