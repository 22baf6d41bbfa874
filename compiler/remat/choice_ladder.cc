#include "compiler/remat/choice_ladder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ft::compiler {

namespace {

constexpr size_t kMostStates = 512; // for each layer, of
constexpr size_t kMostToSort = 2048;

// A way to decide about the layers before one.
struct State {
  uint64_t saved;
  double seconds;
  int option = -1; // of the last layer or layers
  int span = 0;    // that it decided about
  int before = -1; // the state that it continues
};

bool savesLess(const State &a, const State &b) {
  return std::pair(a.saved, a.seconds) < std::pair(b.saved, b.seconds);
}

// Leaves states of which none saves less bytes and costs less than another, in the order of bytes.
void prune(std::vector<State> &states) {
  std::stable_sort(states.begin(), states.end(), savesLess);
  size_t kept = 0;
  for (const State &state : states)
    if (kept == 0 || state.seconds < states[kept - 1].seconds)
      states[kept++] = state;
  states.resize(kept);
}

// An option that ends at a layer, and which of the states that it may continue: the first `count`.
struct Arrival {
  const ChainOption *option;
  const std::vector<State> *from;
  size_t count;
  int number; // of the option

  State after(size_t s) const {
    const State &state = (*from)[s];
    return {state.saved + option->saved, state.seconds + option->seconds, number, option->span,
            static_cast<int>(s)};
  }
};

// What `arrivals` lead to, pruned. Too many to sort: one state for each stretch of bytes, the cheapest, and
// the one that saves least of all.
std::vector<State> take(const std::vector<Arrival> &arrivals) {
  size_t count = 0;
  for (const Arrival &arrival : arrivals)
    count += arrival.count;
  std::vector<State> states;
  if (count <= kMostToSort) {
    states.reserve(count);
    for (const Arrival &arrival : arrivals)
      for (size_t s = 0; s < arrival.count; ++s)
        states.push_back(arrival.after(s));
    prune(states);
    return states;
  }
  // States that come from pruned ones save more and more.
  std::optional<State> least;
  uint64_t most = 0;
  for (const Arrival &arrival : arrivals) {
    State first = arrival.after(0);
    if (!least || savesLess(first, *least))
      least = first;
    most = std::max(most, arrival.after(arrival.count - 1).saved);
  }
  uint64_t stretch = (most - least->saved) / kMostStates + 1;
  states.assign(kMostStates + 1, State{0, std::numeric_limits<double>::infinity()});
  for (const Arrival &arrival : arrivals) {
    // As the bytes grow, so do the stretches: no division.
    uint64_t end = least->saved; // of the stretch
    State *best = nullptr;
    for (size_t s = 0; s < arrival.count; ++s) {
      const State &state = (*arrival.from)[s];
      uint64_t saved = state.saved + arrival.option->saved;
      if (saved >= end) {
        uint64_t place = (saved - least->saved) / stretch;
        best = states.data() + place;
        end = least->saved + (place + 1) * stretch;
      }
      if (state.seconds + arrival.option->seconds < best->seconds)
        *best = arrival.after(s);
    }
  }
  states.push_back(*least);
  std::erase_if(states, [](const State &state) { return std::isinf(state.seconds); });
  prune(states);
  return states;
}

// The most bytes that earlier layers may have saved for `option` to stay below `limit`.
int64_t roomBelow(const std::vector<ChainLayer> &chain, size_t layer, const ChainOption &option,
                  int64_t limit) {
  int64_t forwardRest = chain[layer].forwardRest, backwardRest = chain[layer].backwardRest;
  for (size_t i = layer + 1; i < layer + option.span; ++i) {
    forwardRest = std::max(forwardRest, chain[i].forwardRest);
    backwardRest = std::max(backwardRest, chain[i].backwardRest);
  }
  return limit - std::max(static_cast<int64_t>(option.forwardPeak) + forwardRest,
                          static_cast<int64_t>(option.backwardPeak) + backwardRest);
}

} // namespace

std::optional<Assignment> cheapestBelow(const std::vector<ChainLayer> &chain, int64_t limit) {
  std::vector<std::vector<State>> states(chain.size() + 1);
  states[0].push_back({0, 0});
  std::vector<std::vector<Arrival>> arriving(chain.size() + 1); // by the layer behind their option
  for (size_t layer = 0; layer <= chain.size(); ++layer) {
    if (layer > 0)
      states[layer] = take(arriving[layer]);
    arriving[layer] = {};
    if (layer == chain.size() || states[layer].empty())
      continue;
    for (size_t o = 0; o < chain[layer].options.size(); ++o) {
      const ChainOption &option = chain[layer].options[o];
      if (layer + option.span > chain.size())
        continue;
      // Those behind have saved more.
      int64_t room = roomBelow(chain, layer, option, limit);
      auto end = std::partition_point(states[layer].begin(), states[layer].end(), [&](const State &state) {
        return static_cast<int64_t>(state.saved) <= room;
      });
      if (size_t count = end - states[layer].begin())
        arriving[layer + option.span].push_back({&option, &states[layer], count, static_cast<int>(o)});
    }
  }
  if (states.back().empty())
    return std::nullopt;
  // Pruned states cost less the more they save: the last is the cheapest.
  Assignment result{std::vector<int>(chain.size(), -1), states.back().back().seconds};
  int s = static_cast<int>(states.back().size()) - 1;
  for (size_t layer = chain.size(); layer > 0;) {
    const State &state = states[layer][s];
    layer -= state.span;
    result.options[layer] = state.option;
    s = state.before;
  }
  return result;
}

std::pair<int64_t, int64_t> limitsOf(const std::vector<ChainLayer> &chain, int64_t step) {
  // Enough for everything.
  int64_t most = 0, rest = 0, saved = 0;
  for (const ChainLayer &layer : chain) {
    int64_t its = 0;
    for (const ChainOption &option : layer.options) {
      most = std::max<int64_t>(most, std::max(option.forwardPeak, option.backwardPeak));
      its = std::max<int64_t>(its, option.saved);
    }
    saved += its;
    rest = std::max({rest, layer.forwardRest, layer.backwardRest});
  }
  const int64_t high = 1 + most + rest + saved;
  auto smallest = [&](int64_t infeasible, auto isEnough) {
    int64_t enough = high;
    while (enough - infeasible > step) {
      int64_t middle = infeasible + (enough - infeasible) / 2;
      (isEnough(middle) ? enough : infeasible) = middle;
    }
    return enough;
  };
  std::optional<Assignment> free = cheapestBelow(chain, high);
  int64_t lowest = smallest(0, [&](int64_t limit) { return cheapestBelow(chain, limit).has_value(); });
  int64_t highest = smallest(lowest - 1, [&](int64_t limit) {
    std::optional<Assignment> found = cheapestBelow(chain, limit);
    return found && found->seconds <= free->seconds;
  });
  return {lowest, highest};
}

std::vector<std::pair<int64_t, Assignment>> climb(const std::vector<ChainLayer> &chain, int64_t lowest,
                                                  int64_t highest, int count) {
  std::vector<std::pair<int64_t, Assignment>> rungs;
  for (int i = 0; i < count; ++i) {
    int64_t limit = highest - (highest - lowest) * i / std::max(count - 1, 1);
    std::optional<Assignment> found = cheapestBelow(chain, limit);
    if (found && (rungs.empty() || found->seconds > rungs.back().second.seconds))
      rungs.emplace_back(limit, std::move(*found));
  }
  return rungs;
}

} // namespace ft::compiler
