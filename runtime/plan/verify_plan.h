// Whether a plan may be run: everything an executor relies on, checked once when it is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Dimensions that an operand may have.
inline constexpr int kMaxOperandRank = 8;

// `plan` may come from anywhere. Checks, in this order:
//  - indices: units, buffers, programs and operands exist, enums are known, numbers stay below overflow
//  - parameters lie inside their unit, on block boundaries, without overlap; states of units are what their
//  role says
//  - operands lie inside their buffers on every mesh the plan can run on; live ranges cover every use
//  - kernels and collectives touch device memory, copies join host and device; collectives run over axes that
//  the plan
//    has, and sums of gradients are divided by all ranks, once
//  - what a kernel writes shares no byte with what else it touches, but for a result in the place of an
//  operand
//  - `after` names earlier instructions on other streams
//  - every rank issues the same collectives in the same order on each communicator, and the wait-for graph
//  over all
//    streams, communicators and ranks has no cycle
//  - a transfer begins after what stands before it on compute; compute waits for every transfer, and what the
//  transfer
//    touches lives until then
//  - two instructions that touch one buffer, one of them writing, are ordered by streams and `after`
//    (happens-before); so are the last uses of a buffer and the first use of any buffer that begins its life
//    later, which may get the same bytes
//  - what is read was written before, in the program or, for persistent buffers, by any program or an input,
//  weights by
//    program init; of a whole of which a rank has updated its slice, only that slice is read until it is
//    gathered
// Errors: InvalidArgument, one line that names program, instruction, kernel and layer. At most a few seconds
// for the largest plans; never recurses, never allocates more than in proportion to the plan.
absl::Status VerifyPlan(const proto::Plan& plan);

// The communicators that a plan uses, one for each stream and axis with collectives, in ascending order.
struct CommunicatorUse {
  proto::Stream stream;
  proto::Axis axis;
  uint64_t collectives;  // over all programs
};
std::vector<CommunicatorUse> Communicators(const proto::Plan& plan);

}  // namespace ft
