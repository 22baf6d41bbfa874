// Memory that the ranks of one host share, without a name once all of them have it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

class SharedSegment {
 public:
  struct Options {
    std::string key;  // under which rank 0 publishes the name; each segment of a store needs its own
    int rank = 0;
    int size = 1;
    size_t bytes = 0;
    absl::Time deadline;
    std::function<absl::Status()> interrupted;  // may be empty; asked several times a second
  };

  // Rank 0 creates and reserves it, zero-filled, the others map it; the name is removed from /dev/shm when
  // all have, or when this fails. Errors: ResourceExhausted when /dev/shm is too small (on every rank),
  // Unavailable when a rank does not come.
  static absl::StatusOr<SharedSegment> Create(Store* store, const Options& options);

  SharedSegment(SharedSegment&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedSegment& operator=(SharedSegment&&) = delete;
  ~SharedSegment();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  SharedSegment(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_;
  size_t bytes_;
};

}  // namespace ft
