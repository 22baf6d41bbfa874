// The parts of an all_to_all that a rank sends itself.
#pragma once

#include "runtime/collective/communicator.h"

namespace ft {

// Calls visit(from, to) for each.
template <typename Visit>
void ForEachOwn(const AllToAllParts& parts, int rank, const Visit& visit) {
  const SendPart* from = parts.sends.data();
  for (const ReceivePart& to : parts.receives) {
    if (to.peer != rank) continue;
    while (from->peer != rank) ++from;
    visit(*from++, to);
  }
}

}  // namespace ft
