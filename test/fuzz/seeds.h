// What the fuzzers of kernels begin with: for every kernel of a device, instructions that it takes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/device_class.h"
#include "runtime/device/kernel.h"

namespace ft::fuzz {

// A tensor of an instruction; its bytes are drawn anew for each try.
struct Operand {
  bool present = true;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  int64_t flat_begin = 0;
  std::vector<ParameterRange> parameters = {};
  int64_t below = 0;  // integers are drawn from [0, below); 0: any bits
  int shares = -1;    // a result in the place of this operand
  int64_t shift = 0;  // elements between a boundary of 64 bytes and its begin
};

using Entries = std::vector<std::pair<std::string, KernelAttributes::Value>>;

struct Seed {
  std::string op;
  std::string label;
  std::vector<Operand> in, out;
  Operand workspace;
  Entries attributes;
  std::shared_ptr<const Cluster> cluster = nullptr;  // without code
};

// Of the conformance cases, small ones of every kernel; and of kernels that have none.
std::vector<Seed> Seeds(DeviceClass device);

}  // namespace ft::fuzz
