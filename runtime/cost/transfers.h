// What collectives and copies cost on a machine; docs/targets.md has the formulas and where they come from.
#pragma once

#include <cstdint>

#include "runtime/plan/node_layout.h"
#include "runtime/plan/target.h"

namespace ft {

// Transfers that share a link share its bytes, not its latency.
struct TransferCost {
  double latency_s = 0;
  double bytes_s = 0;

  double seconds() const { return latency_s + bytes_s; }
};

// A collective over a group that lies so on nodes, whose whole buffers have `bytes` together: as it was
// measured over such a group, else by its links. Nothing for one rank. Of an all_to_all `bytes` are those of
// a rank.
TransferCost CollectiveCost(const Target& target, proto::Opcode opcode, uint64_t bytes,
                            const NodeLayout& layout);
inline double CollectiveSeconds(const Target& target, proto::Opcode opcode, uint64_t bytes,
                                const NodeLayout& layout) {
  return CollectiveCost(target, opcode, bytes, layout).seconds();
}

// What was measured over such a group; nullptr: nothing.
const Target::Collective* FindMeasured(const Target& target, proto::Opcode opcode, const NodeLayout& layout);

// The other way round: the latency and rate of the links with which all-gathers over groups that were not
// measured come out as the smallest and the largest of `gathers` do. Those of the network where `gathers`
// goes over several nodes, else of the node; what a step from rank to rank takes stays.
void SetLinkFrom(const Target::Collective& gathers, Target& target);

// Between host and device.
TransferCost CopyCost(const Target& target, uint64_t bytes);
inline double CopySeconds(const Target& target, uint64_t bytes) { return CopyCost(target, bytes).seconds(); }

}  // namespace ft
