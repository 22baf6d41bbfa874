// What one instruction costs a rank: the one place that says so, for schedules that are still being made as
// for plans. Of a plan nothing but units, buffers and the size of a block is looked at. It does not know the
// ranks: FLOPs and bytes of a kernel over slices stand in it for the whole unit.
#pragma once

#include <cstdint>

#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// The type that a kernel computes with: that of the first operand of 16 bits, if there is one.
proto::DType KernelType(const proto::Instruction& kernel);

// The part of a kernel's FLOPs and bytes that falls to one rank: below 1 when it works on slices.
double ShareOfRank(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& kernel);

// Bytes of a transfer's whole buffers: what an all_gather makes, what the others take.
uint64_t TransferBytes(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& transfer);

// Seconds on `target` of a kernel, or of a transfer that has its stream and the link for itself; 0 for waits
// and releases.
double InstructionSeconds(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& instruction,
                          const Target& target);

}  // namespace ft
