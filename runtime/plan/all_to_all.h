// What each rank sends each other in an all_to_all: parameters go from the slices of their units, of which
// every rank has one, to the rank that computes on the whole parameter, or back.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The attribute that says which parameters move.
inline constexpr char kMovedParameters[] = "parameters";

// Bytes of an operand that go to, or come from, a rank of the shard axis.
struct MovedPiece {
  int peer;
  int operand;     // of Instruction.in where it is sent, of Instruction.out where it is received
  uint64_t begin;  // bytes into it
  uint64_t bytes;
};

// What one rank does. The k-th piece that it sends to a peer is the k-th that the peer receives from it;
// pieces of its own are among both.
struct Moves {
  std::vector<MovedPiece> sends, receives;
  uint64_t most_bytes = 0;  // that a rank sends another one; the same on all ranks
};

// Of `rank` on the shard axis of `mesh`. The instruction has passed VerifyAllToAll.
Moves MovesOf(const proto::Plan& plan, const Mesh& mesh, int rank, const proto::Instruction& instruction);

// The parameters of the instruction, by number in the plan.
std::vector<uint32_t> MovedParameters(const proto::Instruction& instruction);

// Whether `rank` on the shard axis of `mesh` runs a kernel: it has what it writes, or every rank has.
bool RunsOn(const proto::Plan& plan, const Mesh& mesh, int rank, const proto::Instruction& kernel);

// The size of a kernel's first result that not every rank has; null for kernels that all ranks run.
const proto::SizeExpr* ShareOf(const proto::Plan& plan, const proto::Instruction& kernel);

}  // namespace ft
