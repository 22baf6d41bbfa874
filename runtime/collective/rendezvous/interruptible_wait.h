// Waiting for the store while the world may fall apart.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

// Waits until all keys exist; asks `interrupted` (may be empty) several times a second and returns its error.
inline absl::Status InterruptibleWait(Store* store, const std::vector<std::string>& keys, absl::Time deadline,
                                      const std::function<absl::Status()>& interrupted) {
  for (;;) {
    if (interrupted) FT_RETURN_IF_ERROR(interrupted());
    absl::Status waited = store->Wait(keys, std::min(deadline, absl::Now() + absl::Milliseconds(200)));
    if (!absl::IsDeadlineExceeded(waited) || absl::Now() >= deadline) return waited;
  }
}

}  // namespace ft
