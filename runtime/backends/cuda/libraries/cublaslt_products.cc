#include "runtime/backends/cuda/libraries/cublaslt_products.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/libraries/cublaslt_api.h"
#include "runtime/backends/cuda/libraries/cublaslt_products_call.h"
#include "runtime/backends/cuda/libraries/sample_values.h"
#include "runtime/backends/cuda/library_error.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

constexpr int kProposals = 8;
// Timings of one algorithm: the best of kRounds, each of kRuns in a row after one to warm up.
constexpr int kRounds = 2, kRuns = 5;
constexpr uint32_t kBestAlignment = 256;  // bytes; more is not asked for

uint32_t AlignmentOf(const void* address) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(address) | kBestAlignment;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

struct Library {
  explicit Library(const CublasLtApi& functions) : api(functions) {}
  ~Library() {
    if (handle != nullptr) api.destroy(handle);
  }

  const CublasLtApi api;
  cublasLtHandle_t handle = nullptr;
};

class CublasLtProduct final : public Product {
 public:
  CublasLtProduct(std::shared_ptr<Library> library, std::unique_ptr<CublasLtCall> call,
                  const cublasLtMatmulAlgo_t& algorithm, uint64_t workspace_bytes)
      : library_(std::move(library)),
        call_(std::move(call)),
        algorithm_(algorithm),
        workspace_bytes_(workspace_bytes) {}

  int Launch(const ProductOperands& operands, StreamHandle stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);  // the call holds addresses
    const cublasStatus_t status =
        call_->Run(library_->handle, algorithm_, operands, workspace_bytes_, stream);
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    return LibraryError(LaunchingLibrary::kCublasLt, status);
  }

 private:
  const std::shared_ptr<Library> library_;
  std::mutex mutex_;
  const std::unique_ptr<CublasLtCall> call_;
  const cublasLtMatmulAlgo_t algorithm_;
  const uint64_t workspace_bytes_;
};

// A stream and two events to time with.
class Stopwatch {
 public:
  explicit Stopwatch(Driver& driver) : driver_(driver) {}
  StreamHandle stream() const { return stream_; }
  ~Stopwatch() {
    // Nothing can be done about a failure here; one that matters shows in the next call.
    for (EventHandle event : {begin_, end_}) {
      if (event != nullptr) driver_.DestroyEvent(event).IgnoreError();
    }
    if (stream_ != nullptr) driver_.DestroyStream(stream_).IgnoreError();
  }
  absl::Status Start() {
    FT_ASSIGN_OR_RETURN(stream_, driver_.CreateStream(/*high_priority=*/false));
    FT_ASSIGN_OR_RETURN(begin_, driver_.CreateEvent(/*timing=*/true));
    FT_ASSIGN_OR_RETURN(end_, driver_.CreateEvent(/*timing=*/true));
    return absl::OkStatus();
  }
  // The number below `count` of what takes least time on the device: run(number, stream) enqueues it and says
  // whether it could. 0 when none could. The first numbers are not at a disadvantage while clocks still rise,
  // since every round times all of them.
  template <typename F>
  absl::StatusOr<size_t> Fastest(size_t count, F run) {
    size_t fastest = 0;
    float least = std::numeric_limits<float>::infinity();
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < count; ++i) {
        FT_ASSIGN_OR_RETURN(const float milliseconds, Time([&] { return run(i, stream_); }));
        if (milliseconds < least) {
          least = milliseconds;
          fastest = i;
        }
      }
    }
    return fastest;
  }

 private:
  // Milliseconds of kRuns in a row, after one; infinity when they could not run.
  template <typename F>
  absl::StatusOr<float> Time(F run) {
    if (!run()) return std::numeric_limits<float>::infinity();
    FT_RETURN_IF_ERROR(driver_.Record(begin_, stream_));
    for (int i = 0; i < kRuns; ++i) {
      if (!run()) return std::numeric_limits<float>::infinity();
    }
    FT_RETURN_IF_ERROR(driver_.Record(end_, stream_));
    FT_RETURN_IF_ERROR(driver_.Synchronize(stream_));
    return driver_.Elapsed(begin_, end_);
  }

  Driver& driver_;
  StreamHandle stream_ = nullptr;
  EventHandle begin_ = nullptr, end_ = nullptr;
};

class CublasLtProducts final : public Products {
 public:
  CublasLtProducts(std::shared_ptr<Library> library, Driver& driver, bool allow_tf32, bool deterministic)
      : library_(std::move(library)),
        driver_(driver),
        allow_tf32_(allow_tf32),
        deterministic_(deterministic),
        values_(driver) {}

  absl::StatusOr<std::shared_ptr<Product>> Create(const ProductSpec& spec, const ProductOperands& operands,
                                                  uint64_t workspace_bytes) override {
    const Key key = KeyOf(spec, operands, workspace_bytes);
    for (const auto& [known, product] : products_) {
      if (known == key) return product;
    }
    FT_ASSIGN_OR_RETURN(std::unique_ptr<CublasLtCall> call,
                        CublasLtCall::Create(library_->api, spec, allow_tf32_));
    absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> proposals =
        call->Propose(library_->handle, key.alignment, workspace_bytes, kProposals);
    if (!proposals.ok()) return Refusal(spec, proposals.status());
    size_t choice = 0;
    if (!deterministic_ && proposals->size() > 1) {
      FT_ASSIGN_OR_RETURN(choice, Fastest(*call, *proposals, spec, operands, workspace_bytes));
    }
    auto product =
        std::make_shared<CublasLtProduct>(library_, std::move(call), (*proposals)[choice], workspace_bytes);
    products_.emplace_back(key, product);
    return product;
  }

  absl::StatusOr<std::shared_ptr<Product>> Fuse(const ProductSpec& spec, const ProductOperands& operands,
                                                uint64_t workspace_bytes,
                                                absl::FunctionRef<int(StreamHandle)> apart) override {
    if (deterministic_) return nullptr;
    const Key key = KeyOf(spec, operands, workspace_bytes);
    for (const auto& [known, product] : fused_) {
      if (known == key) return product;
    }
    absl::StatusOr<std::shared_ptr<Product>> product = Create(spec, operands, workspace_bytes);
    if (absl::IsInvalidArgument(product.status())) product = nullptr;  // the library's refusal
    if (!product.ok()) return product;
    if (*product != nullptr) {
      FT_ASSIGN_OR_RETURN(const bool pays, IsFaster(**product, spec, operands, workspace_bytes, apart));
      if (!pays) product = nullptr;
    }
    fused_.emplace_back(key, *product);
    return product;
  }

 private:
  struct Key {
    ProductSpec spec;
    ProductAlignment alignment;
    uint64_t workspace_bytes;
    bool operator==(const Key&) const = default;
  };
  static Key KeyOf(const ProductSpec& spec, const ProductOperands& o, uint64_t workspace_bytes) {
    return {spec, {AlignmentOf(o.a), AlignmentOf(o.b), AlignmentOf(o.c)}, workspace_bytes};
  }

  static absl::Status Refusal(const ProductSpec& s, const absl::Status& reason) {
    return absl::Status(reason.code(), fmt::format("product [{}, {}] x [{}, {}] of {} into {}: {}", s.m, s.k,
                                                   s.k, s.n, s.float8 ? "fp8" : Name(s.input), Name(s.output),
                                                   std::string(reason.message())));
  }

  // Stopwatch::Fastest of what launches products of `spec` on `operands`, which hold values meanwhile and
  // zeros then.
  template <typename F>
  absl::StatusOr<size_t> FastestOnValues(const ProductSpec& spec, const ProductOperands& operands,
                                         uint64_t workspace_bytes, size_t count, F run) {
    Stopwatch stopwatch(driver_);
    FT_RETURN_IF_ERROR(stopwatch.Start());
    FT_RETURN_IF_ERROR(values_.Write(spec, operands, stopwatch.stream()));
    FT_ASSIGN_OR_RETURN(const size_t fastest, stopwatch.Fastest(count, run));
    FT_RETURN_IF_ERROR(values_.Clear(spec, operands, workspace_bytes, stopwatch.stream()));
    return fastest;
  }

  absl::StatusOr<size_t> Fastest(CublasLtCall& call, const std::vector<cublasLtMatmulAlgo_t>& algorithms,
                                 const ProductSpec& spec, const ProductOperands& operands,
                                 uint64_t workspace_bytes) {
    return FastestOnValues(
        spec, operands, workspace_bytes, algorithms.size(), [&](size_t i, StreamHandle stream) {
          return call.Run(library_->handle, algorithms[i], operands, workspace_bytes, stream) ==
                 CUBLAS_STATUS_SUCCESS;
        });
  }

  absl::StatusOr<bool> IsFaster(Product& product, const ProductSpec& spec, const ProductOperands& operands,
                                uint64_t workspace_bytes, absl::FunctionRef<int(StreamHandle)> apart) {
    FT_ASSIGN_OR_RETURN(
        const size_t fastest,
        FastestOnValues(spec, operands, workspace_bytes, 2, [&](size_t i, StreamHandle stream) {
          return (i == 0 ? apart(stream) : product.Launch(operands, stream)) == 0;
        }));
    return fastest == 1;
  }

  const std::shared_ptr<Library> library_;
  Driver& driver_;
  const bool allow_tf32_, deterministic_;
  SampleValues values_;
  std::vector<std::pair<Key, std::shared_ptr<Product>>> products_;
  std::vector<std::pair<Key, std::shared_ptr<Product>>> fused_;  // null where it does not pay
};

}  // namespace

absl::StatusOr<std::unique_ptr<Products>> CreateCublasLtProducts(const CublasLtApi& api, Driver& driver,
                                                                 bool allow_tf32, bool deterministic) {
  auto library = std::make_shared<Library>(api);
  FT_RETURN_IF_ERROR(api.Check(api.create(&library->handle), "cublasLtCreate"));
  return std::make_unique<CublasLtProducts>(std::move(library), driver, allow_tf32, deterministic);
}

absl::StatusOr<std::unique_ptr<Products>> CreateCublasLtProducts(Driver& driver,
                                                                 const DeviceProperties& properties,
                                                                 bool allow_tf32, bool deterministic) {
  FT_ASSIGN_OR_RETURN(const CublasLtApi api, LoadCublasLt());
  return CreateCublasLtProducts(api, driver, allow_tf32, deterministic);
}

}  // namespace ft::cuda
