// The parts of VerifyPlan, in the order in which they run; each relies on those before it.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Units, parameters, buffers, ports, operands, live ranges, `after`: everything but order.
absl::Status VerifyTables(const proto::Plan& plan);
absl::Status VerifyInstructions(const proto::Plan& plan);

// Waits, writes before reads, happens-before.
absl::Status VerifyOrder(const proto::Plan& plan);

}  // namespace ft
