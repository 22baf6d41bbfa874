// What ranks find out each on its own before the first step, all of them end for, and one says it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/executor/checkpoint_saver.h"

namespace ft {

// All ranks call it, the n-th time with `number` n. OK where `own` is on every rank; else, on every rank, the
// error of the first that has one, naming it unless all ranks say the same (IsKnownToAll). What is known to
// all already is returned as it is. Errors, beside those: of `agree`, where this rank has no error.
absl::Status EndTogether(const AgreeFunction& agree, uint64_t number, const absl::Status& own);

}  // namespace ft
