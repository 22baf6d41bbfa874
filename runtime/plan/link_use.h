// What a training step of a plan sends over each axis of the mesh, by kind of collective.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The collectives of one kind over the groups of ranks along one axis. Axes that are the same ranks on the
// mesh (with one replica, shard and world) are one use.
struct LinkUse {
  proto::Opcode opcode = proto::ALL_GATHER;
  proto::Axis axis = proto::AXIS_WORLD;  // shard or replica where world is the same ranks
  int ranks = 1;                         // of a group; at least 2
  // Stream and axis of one of the instructions: whose communicator serves them.
  proto::Stream stream = proto::REDUCE;
  proto::Axis axis_of_instruction = proto::AXIS_WORLD;
  proto::DType dtype = proto::F32;  // of the largest
  int64_t calls = 0;                // in a training step, all micro-steps together
  uint64_t bytes = 0;               // of them all, whole buffers (TransferBytes)
  uint64_t largest_bytes = 0;       // of a call
  uint64_t typical_bytes = 0;       // half of `bytes` is in calls of at most this size
};

// By axis and kind. The same on all ranks. `plan` has passed VerifyPlan; empty where ranks send nothing.
std::vector<LinkUse> LinkUses(const proto::Plan& plan, const BoundPlan& bound);

// "all_gather over shard"
std::string NameOf(const LinkUse& use);

}  // namespace ft
