// Which instruction or port of a plan a message is about.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The text is made only when it is needed.
struct Place {
  const proto::Plan& plan;
  int program;
  int instruction = -1;
  const proto::Port* port = nullptr;

  template <typename... Parts>
  absl::Status Invalid(const Parts&... parts) const {
    const std::string where = port != nullptr
                                  ? absl::StrCat(plan.programs(program).name(), ", port '", port->name(), "'")
                                  : InstructionPlace(plan, program, instruction);
    return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", where, ": ", parts...));
  }
};

// Of an operand that is present and lies in a buffer of the plan.
inline const proto::Buffer& BufferOf(const Place& place, const proto::Operand& operand) {
  return place.plan.buffers(static_cast<int>(operand.buffer_plus_one()) - 1);
}
inline std::string NameOf(const Place& place, const proto::Operand& operand) {
  return BufferName(place.plan, operand.buffer_plus_one() - 1);
}

}  // namespace ft
