// Reading environment variables that a launcher sets: numbers in range, errors that name variable and value.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ft {

// Returns the value of an environment variable, or null when it is not set.
using EnvironmentLookup = absl::FunctionRef<const char*(const char* name)>;

// Ranks of a run.
inline constexpr int kMaxWorldSize = 1 << 20;

// What says to any launcher's process that it is meant to train alone.
inline constexpr absl::string_view kAlone = "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1";

// InvalidArgument: "environment variable NAME='VALUE' WHAT".
absl::Status BadVariable(const char* name, const char* value, absl::string_view what);

// Reads a whole number in [low, high]; `*out` keeps its value when the variable is not set. Errors:
// BadVariable.
absl::Status ReadNumber(EnvironmentLookup lookup, const char* name, int low, int high, int* out);

// The number that a value stands for, the larger one of torchrun's "1:4"; 0 for words such as "auto".
int NumberOf(absl::string_view value);

}  // namespace ft
