// The parts of an all_to_all that a rank sends itself.
#pragma once

namespace ft {

// Calls visit(from, to) for each; both say their `peer`.
template <typename Sends, typename Receives, typename Visit>
void ForEachOwn(const Sends& sends, const Receives& receives, int rank, const Visit& visit) {
  auto from = sends.begin();
  for (const auto& to : receives) {
    if (to.peer != rank) continue;
    while (from->peer != rank) ++from;
    visit(*from++, to);
  }
}

}  // namespace ft
