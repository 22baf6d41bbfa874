#pragma once

#include <cstdint>

namespace ft {

// Bytes [begin, end) of a buffer.
struct ByteRange {
  int64_t begin;
  int64_t end;
};

}  // namespace ft
