// What a kernel is to the executor: made by a device when a plan is loaded, run by the streams of that device
// once a step.
//
// A plan's buffers never move, so a kernel is created with its final addresses, shapes and attributes;
// everything that can be refused or precomputed is refused or precomputed then. Running it allocates nothing.
// How it is run is between a device and its kernels.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"
#include "runtime/base/flat_layout.h"

namespace ft {

struct Cluster;  // runtime/base/cluster.h

inline constexpr int kMaxRank = 8;

// A dense row-major region of the arena. An absent optional operand has data == nullptr and rank 0.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int rank = 0;
  std::array<int64_t, kMaxRank> dims = {};
  // For a slice of a unit's flat buffer: the element of the unit at which this slice begins. 0 otherwise.
  int64_t flat_begin = 0;
  // For all of a flat buffer or a slice of it: the parameters of its unit, ascending and apart. Empty
  // otherwise. Looked at only when a kernel is created.
  absl::Span<const ParameterRange> parameters = {};

  bool present() const { return data != nullptr; }
  // Number of elements; 1 for a scalar (rank 0).
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(elements()) * SizeOf(dtype); }
  // Extent of the last dimension, and the product of all others.
  int64_t last() const { return rank == 0 ? 1 : dims[rank - 1]; }
  int64_t rows() const { return last() == 0 ? 0 : elements() / last(); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Attributes of an instruction, in the order of the plan; looked at only when a kernel is created.
class KernelAttributes {
 public:
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

  void Add(std::string name, Value value) { entries_.emplace_back(std::move(name), std::move(value)); }

  // InvalidArgument names the attribute when it is missing or of another type. Booleans are integers 0 and 1.
  absl::StatusOr<int64_t> Int(std::string_view name) const;
  absl::StatusOr<double> Float(std::string_view name) const;  // an integer counts as a float
  absl::StatusOr<std::string> String(std::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(std::string_view name) const;
  absl::StatusOr<std::vector<double>> Reals(std::string_view name) const;
  bool Has(std::string_view name) const;
  const std::vector<std::pair<std::string, Value>>& entries() const { return entries_; }

  // What the kernel "cluster" computes; null where nothing is said.
  void SetCluster(std::shared_ptr<const Cluster> cluster) { cluster_ = std::move(cluster); }
  const Cluster* cluster() const { return cluster_.get(); }

 private:
  std::vector<std::pair<std::string, Value>> entries_;
  std::shared_ptr<const Cluster> cluster_;
};

// Operands in the order of the op's declaration in ops.td; optional ones keep their place. Results likewise.
// A result that is updated in place has the address of the operand it is tied to. `workspace` is scratch the
// compiler planned for this op.
struct KernelOperands {
  std::vector<Tensor> in;
  std::vector<Tensor> out;
  Tensor workspace;
};

struct KernelEnvironment {
  int num_threads = 1;  // threads that a kernel's parallel loops may use
};

class Kernel {
 public:
  virtual ~Kernel() = default;
};

// Checks shapes, types and attributes; the error says what is wrong, not where (the caller knows the
// instruction).
using KernelFactory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelOperands& operands,
                                                                  const KernelAttributes& attributes,
                                                                  const KernelEnvironment& environment);

// Kernels of one device by name. Filled by explicit functions, never by static initialisers.
class KernelRegistry {
 public:
  void Add(std::string_view name, KernelFactory factory) { kernels_.emplace_back(name, factory); }
  // nullptr when there is none.
  KernelFactory Find(std::string_view name) const;
  std::vector<std::string> Names() const;

 private:
  std::vector<std::pair<std::string, KernelFactory>> kernels_;
};

}  // namespace ft
