// A collective or a copy by itself.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/verify_place.h"

namespace ft {

// Whether an instruction moves data between ranks, or between memory spaces.
bool IsCollective(proto::Opcode opcode);
bool IsTransfer(proto::Opcode opcode);

// Whether an instruction runs while compute goes on to others: transfers and kernels of the host.
bool RunsBeside(const proto::Instruction& instruction);

// Pairs of operands fit together and stay out of each other's way; stream, axis and memory spaces are right.
// Every operand has passed VerifyOperand.
absl::Status VerifyTransfer(const Place& place, const proto::Instruction& instruction);

}  // namespace ft
