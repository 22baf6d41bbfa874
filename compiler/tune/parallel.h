// Independent work on all cores.
#pragma once

#include "absl/status/status.h"

#include <cstddef>
#include <functional>

namespace ft::compiler {

/// Calls `work` for 0, ..., count - 1, in any order, from as many threads as there are cores. The error of
/// the lowest number, if there is one.
absl::Status inParallel(size_t count, const std::function<absl::Status(size_t)> &work);

} // namespace ft::compiler
