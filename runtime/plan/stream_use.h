// Which streams a plan uses.
#pragma once

#include <algorithm>

#include "runtime/plan/plan.pb.h"

namespace ft {

// Whether an instruction of any program stands on `stream`.
inline bool UsesStream(const proto::Plan& plan, proto::Stream stream) {
  return std::any_of(plan.programs().begin(), plan.programs().end(), [=](const proto::Program& program) {
    return std::any_of(program.instructions().begin(), program.instructions().end(),
                       [=](const proto::Instruction& instruction) { return instruction.stream() == stream; });
  });
}

}  // namespace ft
