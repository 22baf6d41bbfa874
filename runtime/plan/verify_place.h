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

}  // namespace ft
