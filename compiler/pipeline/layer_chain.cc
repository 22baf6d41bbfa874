#include "compiler/pipeline/layer_chain.h"

#include <algorithm>

namespace ft::compiler {

using namespace mlir;

namespace {

constexpr int kSpans[] = {2, 3, 4, 6, 8, 12};
constexpr size_t kMostOptions = 1200; // of all layers together, but for each at least
constexpr size_t kFewestOptions = 20;
constexpr double kCheap = 0.25;

} // namespace

LayerChain::LayerChain(const TrainingGraph &graph, LayerCosts prices,
                       const llvm::DenseMap<Operation *, LiveAt> &live)
    : graph(graph), costs(std::move(prices)) {
  costs.background = [&live](Operation *op) { return live.lookup(op).background; };
  unsigned runs = graph.runs().size();
  layers.resize(runs);
  entries.resize(runs);
  // Many layers mix few options as well as one layer chooses among many.
  size_t most = std::clamp<size_t>(kMostOptions / runs, kFewestOptions, 128);
  auto find = [most](const LayerGraph &layer) { return layerOptions(layer, most); };
  for (unsigned run = 0; run < runs; ++run)
    addOptions(run, 1, find);
  for (unsigned run = 0; run + 1 < runs; ++run)
    if (isCheap(run))
      addOptions(run, 2, find);
  for (int span : kSpans)
    for (unsigned run = 0; run + span < runs; ++run)
      if (areEqual(run, span))
        addOptions(run, span, smallestOptions);
  calibrate(live);
  costs.background = nullptr; // `live` is the caller's
}

// What the layers' own peaks miss of those of the plan.
void LayerChain::calibrate(const llvm::DenseMap<Operation *, LiveAt> &live) {
  uint64_t saved = 0;
  for (unsigned run = 0; run < layers.size(); ++run) {
    const LayerUse &keep = entries[run].front().option->use;
    uint64_t forward = 0, backward = 0;
    for (auto [number, op] : llvm::enumerate(*entries[run].front().ops)) {
      bool inForward = static_cast<int>(number) < classOf[run]->graph.forwardOps;
      uint64_t &most = inForward ? forward : backward;
      most = std::max(most, live.lookup(op).all);
    }
    if (forward != 0)
      layers[run].forwardRest =
          static_cast<int64_t>(forward) - static_cast<int64_t>(saved + keep.forwardPeak);
    if (backward != 0)
      layers[run].backwardRest =
          static_cast<int64_t>(backward) - static_cast<int64_t>(saved + keep.backwardPeak);
    saved += keep.saved;
  }
}

// Look-ups and the like: what such a layer hands on is cheap to compute again for the next one.
bool LayerChain::isCheap(unsigned run) const {
  double own = forwardSeconds(run);
  return own > 0 && own < kCheap * forwardSeconds(run + 1);
}

double LayerChain::forwardSeconds(unsigned run) const {
  const LayerGraph &layer = classOf[run]->graph;
  double seconds = 0;
  for (int op = 0; op < layer.forwardOps; ++op)
    seconds += layer.ops[op].seconds;
  return seconds;
}

bool LayerChain::areEqual(unsigned run, int span) const {
  for (int i = 1; i < span; ++i)
    if (classOf[run + i] != classOf[run])
      return false;
  return true;
}

template <typename FindOptions> void LayerChain::addOptions(unsigned run, int span, FindOptions find) {
  LayerGraph cut = cutLayers(graph, run, run + span, costs);
  cuts.push_back(std::make_unique<std::vector<Operation *>>(cut.origins));
  auto known =
      llvm::find_if(classes, [&](const auto &each) { return each->span == span && each->graph.sameAs(cut); });
  if (known == classes.end()) {
    std::vector<LayerOption> options = find(cut);
    classes.push_back(std::make_unique<Class>(Class{std::move(cut), span, std::move(options)}));
    known = classes.end() - 1;
  }
  if (span == 1)
    classOf.push_back(known->get());
  for (const LayerOption &option : (*known)->options) {
    const LayerUse &use = option.use;
    layers[run].options.push_back({use.saved, use.forwardPeak, use.backwardPeak, use.seconds, span});
    entries[run].push_back({cuts.back().get(), &option});
  }
}

Choices LayerChain::choicesOf(const Assignment &assignment) const {
  Choices choices;
  llvm::DenseMap<Operation *, Choice> byOp;
  for (auto [run, option] : llvm::enumerate(assignment.options)) {
    if (option < 0)
      continue;
    const Entry &entry = entries[run][option];
    for (auto [choice, op] : llvm::zip_first(entry.option->choices, *entry.ops))
      byOp[op] = choice;
  }
  for (const LayerRun &run : graph.runs())
    for (Operation *op : run.ops)
      choices.push_back(byOp.lookup(op));
  return choices;
}

} // namespace ft::compiler
