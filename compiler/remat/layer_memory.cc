#include "compiler/remat/layer_memory.h"

#include <algorithm>
#include <limits>

namespace ft::compiler {

namespace {

// Of a value that has been reloaded.
constexpr int kDone = std::numeric_limits<int>::max();

// A value may exist three times: as forward made it, computed again, and copied back from the host.
enum Copy { kOriginal, kRecomputed, kReloaded };

struct Step {
  int op; // -1: the middle, between forward and backward
  Copy copy;
  int place; // the op in whose place it runs: its own, or the one that needs it
};

class Player {
public:
  Player(const LayerGraph &graph, const Choices &choices)
      : graph(graph), choices(choices), cloned(graph.forwardOps), lastRead(3 * graph.values.size(), -1),
        firstRead(graph.values.size(), -1), taken(3 * graph.values.size()) {}

  LayerUse play() {
    order();
    findReads();
    LayerUse use = count();
    for (int op = 0; op < graph.forwardOps; ++op) {
      if (cloned[op])
        use.seconds += graph.ops[op].seconds;
      auto leaves = [&](const LayerGraph::Result &result) { return isLeaving(result.value); };
      if (std::any_of(graph.ops[op].results.begin(), graph.ops[op].results.end(), leaves))
        use.seconds += graph.ops[op].offloadSeconds;
    }
    return use;
  }

  const std::vector<bool> &executed() const { return cloned; }

private:
  static size_t slot(int value, Copy copy) { return 3 * static_cast<size_t>(value) + copy; }

  bool isForward(int op) const { return op >= 0 && op < graph.forwardOps; }

  // Which copy of `value` an op of backward, or an op computed again, reads.
  Copy copyFor(int value) const {
    int producer = graph.values[value].producer;
    if (!isForward(producer) || choices[producer] == Choice::Keep)
      return kOriginal;
    return choices[producer] == Choice::Recompute ? kRecomputed : kReloaded;
  }

  // Goes to the host, to be read there by backward.
  bool isLeaving(int value) const {
    int producer = graph.values[value].producer;
    return isForward(producer) && choices[producer] == Choice::Offload &&
           (firstRead[value] >= 0 || graph.values[value].savedForOthers);
  }

  void require(int reader, std::vector<int> &missing) {
    for (int value : graph.ops[reader].operands) {
      if (copyFor(value) != kRecomputed || cloned[graph.values[value].producer])
        continue;
      int producer = graph.values[value].producer;
      cloned[producer] = true;
      missing.push_back(producer);
      require(producer, missing);
    }
  }

  void order() {
    for (int op = 0; op < graph.forwardOps; ++op)
      steps.push_back({op, kOriginal, op});
    middle = static_cast<int>(steps.size());
    steps.push_back({-1, kOriginal, -1});
    size_t runBegin = steps.size();
    int run = -1, runFirst = -1;
    std::vector<int> missing;
    for (int op = graph.forwardOps; op < static_cast<int>(graph.ops.size()); ++op) {
      if (graph.ops[op].run != run) {
        run = graph.ops[op].run;
        runFirst = op;
        runBegin = steps.size();
      }
      missing.clear();
      require(op, missing);
      std::sort(missing.begin(), missing.end());
      size_t ahead = countAhead(missing, run);
      std::vector<Step> early;
      for (size_t i = 0; i < missing.size(); ++i)
        (i < ahead ? early : steps).push_back({missing[i], kRecomputed, i < ahead ? runFirst : op});
      steps.insert(steps.begin() + static_cast<ptrdiff_t>(runBegin), early.begin(), early.end());
      runBegin += early.size();
      steps.push_back({op, kOriginal, op});
    }
  }

  // As ft-apply-remat: ops of other layers that read parameters go in front of the run.
  size_t countAhead(const std::vector<int> &missing, int run) const {
    size_t ahead = 0;
    bool readsParameters = false;
    for (size_t i = 0; i < missing.size(); ++i)
      if (graph.ops[missing[i]].run != run) {
        ahead = i + 1;
        readsParameters |= graph.ops[missing[i]].readsParameters;
      }
    return readsParameters ? ahead : 0;
  }

  void findReads() {
    for (int index = 0; index < static_cast<int>(steps.size()); ++index) {
      auto [op, copy, place] = steps[index];
      if (op < 0)
        continue;
      bool later = index > middle;
      for (int value : graph.ops[op].operands) {
        Copy read = later ? copyFor(value) : kOriginal;
        lastRead[slot(value, read)] = index;
        if (read == kReloaded && firstRead[value] < 0)
          firstRead[value] = index;
      }
    }
    for (size_t value = 0; value < graph.values.size(); ++value) {
      const LayerGraph::Value &info = graph.values[value];
      if (info.readAfter)
        lastRead[slot(static_cast<int>(value), copyFor(static_cast<int>(value)))] =
            static_cast<int>(steps.size());
      if (!isForward(info.producer))
        continue;
      // On its way to the host until the layer ends; or waiting for others.
      int &last = lastRead[slot(static_cast<int>(value), kOriginal)];
      if (isLeaving(static_cast<int>(value)) || info.savedForOthers)
        last = std::max(last, middle);
    }
  }

  // Bytes come with a value's definition and go after its last reader, unless a result of that one takes them
  // over.
  LayerUse count() {
    LayerUse use;
    std::vector<uint64_t> freed(steps.size() + 1);
    uint64_t live = 0;
    auto begin = [&](int value, Copy copy, int index) {
      int last = lastRead[slot(value, copy)];
      live += graph.values[value].bytes;
      if (last < static_cast<int>(steps.size()))
        freed[std::max(last, index)] += graph.values[value].bytes;
    };
    for (int index = 0; index < static_cast<int>(steps.size()); ++index) {
      auto [op, copy, place] = steps[index];
      if (op < 0) {
        use.saved = live - leavingBytes();
        live -= freed[index];
        for (size_t value = 0; value < graph.values.size(); ++value)
          if (graph.values[value].fromBackward)
            begin(static_cast<int>(value), kOriginal, index);
        continue;
      }
      for (int value : graph.ops[op].operands)
        if (index > middle && firstRead[value] == index) {
          begin(value, kReloaded, index);
          firstRead[value] = kDone;
        }
      for (const LayerGraph::Result &result : graph.ops[op].results)
        if (!takeOver(result, copy, index, freed))
          begin(result.value, copy, index);
      uint64_t &peak = index < middle ? use.forwardPeak : use.backwardPeak;
      peak = std::max(peak, live + graph.ops[op].workspace + graph.ops[place].background);
      live -= freed[index];
    }
    return use;
  }

  // Of what is still on its way to the host in the middle.
  uint64_t leavingBytes() const {
    uint64_t bytes = 0;
    for (size_t value = 0; value < graph.values.size(); ++value)
      if (isLeaving(static_cast<int>(value)))
        bytes += graph.values[value].bytes;
    return bytes;
  }

  bool takeOver(const LayerGraph::Result &result, Copy copy, int index, std::vector<uint64_t> &freed) {
    int operand = result.takesOver;
    uint64_t bytes = graph.values[result.value].bytes;
    if (operand < 0 || bytes == 0 || graph.values[operand].bytes != bytes)
      return false;
    Copy read = index > middle ? copyFor(operand) : kOriginal;
    size_t its = slot(operand, read);
    if (lastRead[its] != index || taken[its])
      return false;
    taken[its] = true;
    freed[index] -= bytes; // it lives on in the result
    int last = lastRead[slot(result.value, copy)];
    if (last < static_cast<int>(steps.size()))
      freed[std::max(last, index)] += bytes;
    return true;
  }

  const LayerGraph &graph;
  const Choices &choices;
  std::vector<Step> steps;
  int middle = 0;
  std::vector<bool> cloned;
  std::vector<int> lastRead;  // step by slot; -1: never
  std::vector<int> firstRead; // step that reads a value from the host first
  std::vector<bool> taken;
};

} // namespace

LayerUse useOfLayer(const LayerGraph &graph, const Choices &choices, std::vector<bool> *executed) {
  Player player(graph, choices);
  LayerUse use = player.play();
  if (executed)
    *executed = player.executed();
  return use;
}

} // namespace ft::compiler
