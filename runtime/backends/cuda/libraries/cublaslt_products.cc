#include "runtime/backends/cuda/libraries/cublaslt_products.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/libraries/cublaslt_api.h"
#include "runtime/backends/cuda/libraries/cublaslt_products_call.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

constexpr int kCudaErrorUnknown = 999, kCudaErrorLaunchFailure = 719;
constexpr int kProposals = 8;
// Timings of one algorithm: the best of kRounds, each of kRuns in a row.
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

  int Launch(const void* a, const void* b, void* c, const void* bias, void* workspace,
             StreamHandle stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);  // the call holds the bias
    const cublasStatus_t status =
        call_->Run(library_->handle, algorithm_, a, b, c, bias, workspace, workspace_bytes_, stream);
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? kCudaErrorLaunchFailure : kCudaErrorUnknown;
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
  // Milliseconds that `run`, which enqueues on a stream and says whether it could, takes on the device;
  // infinity when it could not.
  template <typename F>
  absl::StatusOr<float> Time(F run) {
    if (!run(stream_)) return std::numeric_limits<float>::infinity();  // also warms up
    float best = std::numeric_limits<float>::infinity();
    for (int round = 0; round < kRounds; ++round) {
      FT_RETURN_IF_ERROR(driver_.Record(begin_, stream_));
      for (int i = 0; i < kRuns; ++i) {
        if (!run(stream_)) return std::numeric_limits<float>::infinity();
      }
      FT_RETURN_IF_ERROR(driver_.Record(end_, stream_));
      FT_RETURN_IF_ERROR(driver_.Synchronize(stream_));
      FT_ASSIGN_OR_RETURN(const float milliseconds, driver_.Elapsed(begin_, end_));
      best = std::min(best, milliseconds);
    }
    return best;
  }

 private:
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
        deterministic_(deterministic) {}

  absl::StatusOr<std::shared_ptr<Product>> Create(const ProductSpec& spec, const void* a, const void* b,
                                                  void* c, void* workspace,
                                                  uint64_t workspace_bytes) override {
    const Key key = {spec, {AlignmentOf(a), AlignmentOf(b), AlignmentOf(c)}, workspace_bytes};
    for (const auto& [known, product] : products_) {
      if (known == key) return product;
    }
    FT_ASSIGN_OR_RETURN(std::unique_ptr<CublasLtCall> call,
                        CublasLtCall::Create(library_->api, spec, allow_tf32_));
    absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> proposals =
        call->Propose(library_->handle, key.alignment, workspace_bytes, kProposals);
    if (!proposals.ok()) return Refusal(spec, proposals.status());
    size_t choice = 0;
    // b stands in for the bias: n elements of its type, which every b has.
    const bool can_time = !spec.bias || key.alignment.b >= kBiasAlignment;
    if (!deterministic_ && can_time && proposals->size() > 1) {
      const Buffers buffers = {a, b, c, spec.bias ? b : nullptr, workspace, workspace_bytes};
      FT_ASSIGN_OR_RETURN(choice, Fastest(*call, *proposals, buffers));
    }
    auto product =
        std::make_shared<CublasLtProduct>(library_, std::move(call), (*proposals)[choice], workspace_bytes);
    products_.emplace_back(key, product);
    return product;
  }

 private:
  struct Key {
    ProductSpec spec;
    ProductAlignment alignment;
    uint64_t workspace_bytes;
    bool operator==(const Key&) const = default;
  };
  struct Buffers {
    const void *a, *b;
    void* c;
    const void* bias;
    void* workspace;
    uint64_t workspace_bytes;
  };

  static absl::Status Refusal(const ProductSpec& s, const absl::Status& reason) {
    return absl::Status(reason.code(),
                        fmt::format("product [{}, {}] x [{}, {}] of {} into {}: {}", s.m, s.k, s.k, s.n,
                                    Name(s.input), Name(s.output), std::string(reason.message())));
  }

  absl::StatusOr<size_t> Fastest(CublasLtCall& call, const std::vector<cublasLtMatmulAlgo_t>& algorithms,
                                 const Buffers& buffers) {
    Stopwatch stopwatch(driver_);
    FT_RETURN_IF_ERROR(stopwatch.Start());
    size_t fastest = 0;
    float least = std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < algorithms.size(); ++i) {
      const auto run = [&](StreamHandle stream) {
        return call.Run(library_->handle, algorithms[i], buffers.a, buffers.b, buffers.c, buffers.bias,
                        buffers.workspace, buffers.workspace_bytes, stream) == CUBLAS_STATUS_SUCCESS;
      };
      FT_ASSIGN_OR_RETURN(const float milliseconds, stopwatch.Time(run));
      if (milliseconds < least) {
        least = milliseconds;
        fastest = i;
      }
    }
    return fastest;
  }

  const std::shared_ptr<Library> library_;
  Driver& driver_;
  const bool allow_tf32_, deterministic_;
  std::vector<std::pair<Key, std::shared_ptr<Product>>> products_;
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
