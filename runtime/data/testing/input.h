// An input of a model as a plan has it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace ft {

inline proto::Input InputOf(const std::string& name, proto::DType dtype, const std::vector<uint64_t>& shape,
                            proto::Input::Filling filling = proto::Input::TENSOR) {
  proto::Input input;
  input.set_name(name);
  input.set_dtype(dtype);
  for (const uint64_t extent : shape) input.add_shape(extent);
  input.set_filling(filling);
  return input;
}

}  // namespace ft
