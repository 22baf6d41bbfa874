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

// Too many to sort: one state for each stretch of bytes, the cheapest, and the one that saves least of all.
std::vector<State> thinned(const std::vector<State> &states) {
  auto [least, most] = std::minmax_element(states.begin(), states.end(), savesLess);
  uint64_t stretch = (most->saved - least->saved) / kMostStates + 1;
  std::vector<State> result(kMostStates + 1, State{0, std::numeric_limits<double>::infinity()});
  for (const State &state : states)
    if (State &best = result[(state.saved - least->saved) / stretch]; state.seconds < best.seconds)
      best = state;
  result.push_back(*least);
  std::erase_if(result, [](const State &state) { return std::isinf(state.seconds); });
  return result;
}

// Leaves states of which none saves less bytes and costs less than another, in the order of bytes.
void prune(std::vector<State> &states) {
  if (states.size() > kMostToSort)
    states = thinned(states);
  std::stable_sort(states.begin(), states.end(), savesLess);
  std::vector<State> best;
  for (const State &state : states)
    if (best.empty() || state.seconds < best.back().seconds)
      best.push_back(state);
  states = std::move(best);
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
  for (size_t layer = 0; layer < chain.size(); ++layer) {
    prune(states[layer]);
    for (size_t o = 0; o < chain[layer].options.size(); ++o) {
      const ChainOption &option = chain[layer].options[o];
      if (layer + option.span > chain.size())
        continue;
      int64_t room = roomBelow(chain, layer, option, limit);
      std::vector<State> &next = states[layer + option.span];
      for (size_t s = 0; s < states[layer].size(); ++s) {
        const State &state = states[layer][s];
        if (static_cast<int64_t>(state.saved) > room)
          break; // the others have saved more
        next.push_back({state.saved + option.saved, state.seconds + option.seconds, static_cast<int>(o),
                        option.span, static_cast<int>(s)});
      }
    }
  }
  prune(states.back());
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
  int64_t high = 1;
  for (const ChainLayer &layer : chain) {
    int64_t most = 0, saved = 0;
    for (const ChainOption &option : layer.options) {
      most = std::max<int64_t>(most, std::max(option.forwardPeak, option.backwardPeak));
      saved = std::max<int64_t>(saved, option.saved);
    }
    high += most + saved + std::max<int64_t>({layer.forwardRest, layer.backwardRest, 0});
  }
  auto smallest = [&](auto isEnough) {
    int64_t infeasible = 0, enough = high;
    while (enough - infeasible > step) {
      int64_t middle = infeasible + (enough - infeasible) / 2;
      (isEnough(middle) ? enough : infeasible) = middle;
    }
    return enough;
  };
  std::optional<Assignment> free = cheapestBelow(chain, high);
  int64_t lowest = smallest([&](int64_t limit) { return cheapestBelow(chain, limit).has_value(); });
  int64_t highest = smallest([&](int64_t limit) {
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
