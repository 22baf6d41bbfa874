// Elements of bytes that begin anywhere.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ft {

// Element `index` of those of type T that begin at `elements`, which need not be aligned.
template <typename T>
T LoadElement(const void* elements, int64_t index = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(elements) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

}  // namespace ft
