// How much of an instruction falls to one rank. Of a plan nothing but units, buffers and the size of a block
// is looked at. It does not know the ranks: FLOPs and bytes of a kernel over slices stand in it for the whole
// unit.
#pragma once

#include <cstdint>

#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The part of a kernel's FLOPs and bytes that falls to one rank: below 1 when it works on slices; 0 where no
// rank has what it works on, 1 where the first has.
double ShareOfRank(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& kernel);

// Bytes of a transfer's whole buffers: what an all_gather makes, what the others take.
uint64_t TransferBytes(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& transfer);

}  // namespace ft
