// Copies of memory that is not read again soon.
#pragma once

#include <cstddef>

namespace ft {

// As std::memcpy, but `to` is written past the caches, whatever the size: it need not be read for that first,
// and nothing else is pushed out. What follows sees all of it.
void StreamingCopy(void* to, const void* from, size_t bytes);

}  // namespace ft
