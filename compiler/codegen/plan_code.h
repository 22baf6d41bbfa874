// Code for the clusters of a plan.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace ft::compiler {

/// This compiler and its LLVM, as plans name them: the same make the same code.
std::string producer();

/// Code for each cluster, in the place of what there is: for the machines x86-64-v2, x86-64-v3, x86-64-v4 and
/// ptx whose names match one of `wanted`; {"all"}: for all, {"none"}: for none. As many threads as the
/// machine has processors; the same bytes always, by the bodies alone. Errors: InvalidArgument for a pattern
/// that matches no name, and for a body that gives no code.
absl::Status makeCode(proto::Plan &plan, const std::vector<std::string> &wanted);

/// Whether the plan's code is what this compiler makes of its bodies. Errors: InvalidArgument names the first
/// that is not.
absl::Status compareCode(const proto::Plan &plan);

} // namespace ft::compiler
