// How elements are reduced to one.
#pragma once

#include <cstdint>

namespace ft {

enum class ReductionKind : uint8_t { kSum, kMax, kMin };

}  // namespace ft
