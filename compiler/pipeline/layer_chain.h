// A training step as a chain of layers, each with the choices that are worth considering for it.
#pragma once

#include "compiler/pipeline/measured_plan.h"
#include "compiler/remat/choice_ladder.h"
#include "compiler/remat/layer_options.h"

#include <memory>
#include <vector>

namespace ft::compiler {

class LayerChain {
public:
  /// `live` is that of the plan that keeps everything; `costs.background` is taken from it.
  LayerChain(const TrainingGraph &graph, LayerCosts costs,
             const llvm::DenseMap<mlir::Operation *, LiveAt> &live);

  const std::vector<ChainLayer> &chain() const { return layers; }

  /// The choice for each forward op, by its number among all forward ops.
  Choices choicesOf(const Assignment &assignment) const;

private:
  // Layers whose graphs are equal share the options that were found for the first.
  struct Class {
    LayerGraph graph;
    int span;
    std::vector<LayerOption> options;
  };
  struct Entry {
    const std::vector<mlir::Operation *> *ops; // of the layers, as the class's graph numbers them
    const LayerOption *option;
  };

  void calibrate(const llvm::DenseMap<mlir::Operation *, LiveAt> &live);
  bool isCheap(unsigned run) const;
  double forwardSeconds(unsigned run) const;
  bool areEqual(unsigned run, int span) const;
  template <typename FindOptions> void addOptions(unsigned run, int span, FindOptions find);

  const TrainingGraph &graph;
  LayerCosts costs;
  std::vector<std::unique_ptr<Class>> classes;
  std::vector<std::unique_ptr<std::vector<mlir::Operation *>>> cuts;
  std::vector<const Class *> classOf;      // by run
  std::vector<ChainLayer> layers;          // by run
  std::vector<std::vector<Entry>> entries; // by run, parallel to the options of `layers`
};

} // namespace ft::compiler
