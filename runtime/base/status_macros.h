// Early returns for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define FT_CONCAT_INNER(a, b) a##b
#define FT_CONCAT(a, b) FT_CONCAT_INNER(a, b)

// Returns from the calling function when `expr` is not OK.
#define FT_RETURN_IF_ERROR(expr)                            \
  do {                                                      \
    if (absl::Status ft_status = (expr); !ft_status.ok()) { \
      return ft_status;                                     \
    }                                                       \
  } while (false)

// FT_ASSIGN_OR_RETURN(auto x, F()): x takes F's value, or the calling function returns F's error.
#define FT_ASSIGN_OR_RETURN(lhs, expr) FT_ASSIGN_OR_RETURN_IMPL(FT_CONCAT(ft_or_, __LINE__), lhs, expr)
#define FT_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = std::move(tmp).value()
