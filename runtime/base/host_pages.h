// Memory of the host in pages of its own that are there from the beginning: filled by several threads at
// once, on one NUMA node where that can be.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace ft {

class HostPages {
 public:
  struct Wish {
    int numa_node = -1;  // where pages shall lie, as far as it has room; -1: anywhere
    int threads = 1;     // that fill them
  };

  // Zeroed. ResourceExhausted when the host, or a limit above this process, has less room now: filling more
  // would end the process. What others are about to take it does not see.
  static absl::StatusOr<std::unique_ptr<HostPages>> Create(uint64_t bytes, const Wish& wish);
  ~HostPages();
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // Whether the system took the wish for a node.
  bool is_on_node() const { return is_on_node_; }

 private:
  HostPages(void* data, uint64_t bytes) : data_(data), bytes_(bytes) {}

  void* const data_;
  const uint64_t bytes_;
  bool is_on_node_ = false;
};

}  // namespace ft
