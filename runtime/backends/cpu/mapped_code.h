// The code of a cluster, made executable.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/base/cluster.h"

namespace ft::cpu {

class MappedCode {
 public:
  using Entry = void (*)(void* const* operands, int64_t begin, int64_t end);

  // A copy of `code`, which the process may run but not write. Errors: ResourceExhausted.
  static absl::StatusOr<std::shared_ptr<const MappedCode>> Map(const ClusterCode& code);
  ~MappedCode();
  MappedCode(const MappedCode&) = delete;
  MappedCode& operator=(const MappedCode&) = delete;

  Entry kernel() const { return kernel_; }
  Entry combine() const { return combine_; }

 private:
  MappedCode(void* memory, const ClusterCode& code);

  void* const memory_;
  const size_t bytes_;
  const Entry kernel_, combine_;
};

// Which code this instruction set runs: ClusterCode::target. Empty where none is made for it.
std::string_view CodeTarget(Isa isa);

// What this instruction set runs of a cluster's code, mapped once for all its kernels; null where there is
// none.
absl::StatusOr<std::shared_ptr<const MappedCode>> CodeOf(const Cluster& cluster, Isa isa);

}  // namespace ft::cpu
