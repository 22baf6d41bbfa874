// The parts of VerifyPlan, in the order in which they run; each relies on those before it.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Units, parameters, states, buffers, programs.
absl::Status VerifyTables(const proto::Plan& plan);

// Ports, operands, live ranges, `after`; what each opcode may do: everything about an instruction but order.
absl::Status VerifyInstructions(const proto::Plan& plan);

// No rank can block another; sums over two axes are whole. Relies on no order in `after`.
absl::Status VerifyCommunication(const proto::Plan& plan);

// What makes means of gradients that are summed over ranks.
absl::Status VerifyMeans(const proto::Plan& plan);

// Begin and end of transfers, happens-before.
absl::Status VerifyOrder(const proto::Plan& plan);

// Writes before reads, in a program and from one to the next.
absl::Status VerifyContents(const proto::Plan& plan);

// The inputs of the model, the ports that are filled with them, and the outputs of evaluation.
absl::Status VerifyInputs(const proto::Plan& plan);

// Adapters, and what is frozen.
absl::Status VerifyLora(const proto::Plan& plan);

}  // namespace ft
