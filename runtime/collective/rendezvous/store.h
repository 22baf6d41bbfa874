// A key-value store that all ranks of a run see; used to find each other, never in a training step.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace ft {

// Every method blocks for at most its deadline, and reports DeadlineExceeded then, Unavailable when the store
// is gone.
class Store {
 public:
  virtual ~Store() = default;

  virtual absl::Status Set(absl::string_view key, absl::string_view value) = 0;

  // Waits until the key exists.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, absl::Time deadline) = 0;

  // Adds to a counter that starts at 0 and returns the new value. Get on such a key gives decimal text.
  virtual absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) = 0;

  // Waits until all keys exist.
  virtual absl::Status Wait(absl::Span<const std::string> keys, absl::Time deadline) = 0;

  // True when all keys exist now.
  virtual absl::StatusOr<bool> Check(absl::Span<const std::string> keys) = 0;
};

}  // namespace ft
