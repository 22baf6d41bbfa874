// Code for the clusters of a plan.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace ft::compiler {

/// This compiler and its LLVM, as plans name them: the same make the same code.
std::string producer();

/// Code of each level of x86-64, and PTX, for each cluster, in the place of what there is. As many threads as
/// the machine has processors; the same bytes always, by the bodies alone. Errors: InvalidArgument for a body
/// that gives none.
absl::Status makeCode(proto::Plan &plan);

/// Whether the plan's code is what this compiler makes of its bodies. Errors: InvalidArgument names the first
/// that is not.
absl::Status compareCode(const proto::Plan &plan);

} // namespace ft::compiler
