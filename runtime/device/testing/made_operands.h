// Operands and attributes of kernels, for tests of what reads them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/device/check.h"

namespace ft::made {

inline KernelAttributes Attributes(std::vector<std::pair<std::string, KernelAttributes::Value>> entries) {
  KernelAttributes attributes;
  for (auto& [name, value] : entries) attributes.Add(name, std::move(value));
  return attributes;
}

template <typename Result>
void ExpectRefused(const Result& result, const std::string& word) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << word;
  EXPECT_TRUE(absl::StrContains(result.status().message(), word)) << result.status() << " has no " << word;
}

// Addresses are not looked at.
inline Tensor Of(std::vector<int64_t> dims, DType dtype = DType::kF32) {
  static char data[64];
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims.begin());
  return tensor;
}

}  // namespace ft::made
