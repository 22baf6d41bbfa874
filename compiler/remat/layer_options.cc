#include "compiler/remat/layer_options.h"

#include <algorithm>
#include <set>

namespace ft::compiler {

namespace {

constexpr size_t kMostForAllSubsets = 14;
constexpr uint64_t kCoarseness = 500;

// Ops whose recomputation backward could make use of.
std::vector<int> usefulOps(const LayerGraph &graph) {
  Choices all(graph.forwardOps, Choice::Keep);
  for (int op = 0; op < graph.forwardOps; ++op)
    if (graph.ops[op].mayRecompute)
      all[op] = Choice::Recompute;
  std::vector<bool> executed;
  useOfLayer(graph, all, &executed);
  std::vector<int> useful;
  for (int op = 0; op < graph.forwardOps; ++op)
    if (executed[op])
      useful.push_back(op);
  return useful;
}

bool isCheaper(const LayerOption &a, const LayerOption &b) {
  if (a.use.seconds != b.use.seconds)
    return a.use.seconds < b.use.seconds;
  if (a.use.saved != b.use.saved)
    return a.use.saved < b.use.saved;
  return a.use.backwardPeak + a.use.forwardPeak < b.use.backwardPeak + b.use.forwardPeak;
}

// Drops what a cheaper option beats within `slack` bytes.
void keepBest(std::vector<LayerOption> &options, uint64_t slack) {
  std::stable_sort(options.begin(), options.end(), isCheaper);
  std::vector<LayerOption> best;
  for (LayerOption &option : options) {
    auto beats = [&](const LayerOption &other) {
      return other.use.saved <= option.use.saved + slack &&
             other.use.forwardPeak <= option.use.forwardPeak + slack &&
             other.use.backwardPeak <= option.use.backwardPeak + slack;
    };
    if (std::none_of(best.begin(), best.end(), beats))
      best.push_back(std::move(option));
  }
  options = std::move(best);
}

std::vector<LayerOption> allSubsets(const LayerGraph &graph, const std::vector<int> &ops) {
  std::vector<LayerOption> options;
  for (size_t subset = 0; subset < size_t{1} << ops.size(); ++subset) {
    Choices choices(graph.forwardOps, Choice::Keep);
    for (size_t i = 0; i < ops.size(); ++i)
      if (subset >> i & 1)
        choices[ops[i]] = Choice::Recompute;
    LayerUse use = useOfLayer(graph, choices);
    options.push_back({std::move(choices), use});
  }
  return options;
}

// From the best options so far, one op after the other takes the other choice, until nothing better appears.
void improve(const LayerGraph &graph, const std::vector<int> &ops, Choice from, Choice to, uint64_t slack,
             std::vector<LayerOption> &options) {
  std::set<Choices> seen;
  bool found = true;
  while (found) {
    found = false;
    std::vector<LayerOption> more = options;
    for (const LayerOption &option : options) {
      if (!seen.insert(option.choices).second)
        continue;
      for (int op : ops) {
        if (option.choices[op] != from)
          continue;
        Choices choices = option.choices;
        choices[op] = to;
        LayerUse use = useOfLayer(graph, choices);
        more.push_back({std::move(choices), use});
        found = true;
      }
    }
    keepBest(more, slack);
    options = std::move(more);
  }
}

std::vector<int> offloadableOps(const LayerGraph &graph) {
  std::vector<int> ops;
  for (int op = 0; op < graph.forwardOps; ++op)
    if (graph.ops[op].offloadSeconds > 0)
      ops.push_back(op);
  return ops;
}

} // namespace

std::vector<LayerOption> layerOptions(const LayerGraph &graph, size_t most) {
  Choices keep(graph.forwardOps, Choice::Keep);
  std::vector<LayerOption> options = {{keep, useOfLayer(graph, keep)}};
  uint64_t slack = options.front().use.saved / kCoarseness;
  std::vector<int> ops = usefulOps(graph);
  if (ops.size() <= kMostForAllSubsets) {
    options = allSubsets(graph, ops);
    keepBest(options, slack);
  } else {
    improve(graph, ops, Choice::Keep, Choice::Recompute, slack, options);
  }
  if (std::vector<int> movable = offloadableOps(graph); !movable.empty())
    improve(graph, movable, Choice::Keep, Choice::Offload, slack, options);
  auto least = [](const LayerOption &a, const LayerOption &b) { return a.use.saved < b.use.saved; };
  LayerOption smallest = *std::min_element(options.begin(), options.end(), least);
  for (uint64_t wider = slack + 1; options.size() > most; wider += wider / 4 + 1)
    keepBest(options, wider);
  if (std::min_element(options.begin(), options.end(), least)->use.saved > smallest.use.saved)
    options.push_back(std::move(smallest));
  return options;
}

std::vector<LayerOption> smallestOptions(const LayerGraph &graph) {
  Choices choices(graph.forwardOps, Choice::Keep);
  for (int op : usefulOps(graph))
    choices[op] = Choice::Recompute;
  std::vector<LayerOption> options = {{choices, useOfLayer(graph, choices)}};
  for (int op : offloadableOps(graph))
    if (choices[op] == Choice::Keep)
      choices[op] = Choice::Offload;
  if (choices != options.front().choices)
    options.push_back({choices, useOfLayer(graph, choices)});
  return options;
}

} // namespace ft::compiler
