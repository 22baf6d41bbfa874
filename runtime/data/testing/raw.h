// Files of tokens, for tests.
#pragma once

#include <string>
#include <vector>

namespace ft {

// The bytes of `values` as they lie in memory.
template <typename T>
std::string Raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace ft
