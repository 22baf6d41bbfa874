#include "compiler/remat/layer_options.h"

#include <gtest/gtest.h>

namespace ft::compiler {
namespace {

// x (from the layer before) -> a = f(x) -> b = g(a) -> y = h(b), handed on. Backward: db reads b, da reads a,
// dx reads x. Values: 0 x, 1 a (100 bytes), 2 b (400), 3 y (100), 4 dy, 5 db (400), 6 da (100), 7 dx (100).
LayerGraph example() {
  LayerGraph graph;
  graph.values.resize(8);
  for (auto [value, bytes] : {std::pair{1, 100}, {2, 400}, {3, 100}, {4, 100}, {5, 400}, {6, 100}, {7, 100}})
    graph.values[value].bytes = bytes;
  graph.values[3].savedForOthers = true;
  graph.values[4].fromBackward = true;
  graph.values[7].readAfter = true;
  auto add = [&](std::vector<int> operands, int result, double seconds) {
    graph.values[result].producer = static_cast<int>(graph.ops.size());
    LayerGraph::Op op;
    op.operands = std::move(operands);
    op.results = {{result, -1}};
    op.seconds = seconds;
    graph.ops.push_back(op);
  };
  add({0}, 1, 1);
  add({1}, 2, 2);
  add({2}, 3, 4);
  graph.forwardOps = 3;
  graph.ops[0].mayRecompute = graph.ops[1].mayRecompute = true;
  add({4, 2}, 5, 0);
  add({5, 1}, 6, 0);
  add({6, 0}, 7, 0);
  return graph;
}

constexpr Choice K = Choice::Keep, R = Choice::Recompute, O = Choice::Offload;

TEST(LayerMemoryTest, KeepsAll) {
  LayerUse use = useOfLayer(example(), {K, K, K});
  EXPECT_EQ(use.saved, 600u);
  EXPECT_EQ(use.forwardPeak, 600u);
  EXPECT_EQ(use.backwardPeak, 100u + 400 + 100 + 400); // a, b, dy, db
  EXPECT_EQ(use.seconds, 0);
}

TEST(LayerMemoryTest, RecomputesWhatItNeedsWhenItNeedsIt) {
  std::vector<bool> executed;
  LayerUse use = useOfLayer(example(), {R, R, K}, &executed);
  EXPECT_EQ(use.saved, 100u); // y
  EXPECT_EQ(use.forwardPeak, 500u);
  EXPECT_EQ(use.backwardPeak, 1000u);
  EXPECT_EQ(use.seconds, 3);
  EXPECT_EQ(executed, (std::vector<bool>{true, true, false}));
}

TEST(LayerMemoryTest, AnOpIsRepeatedOnce) {
  EXPECT_EQ(useOfLayer(example(), {R, K, K}).seconds, 1);
  EXPECT_EQ(useOfLayer(example(), {K, R, K}).seconds, 2);
  EXPECT_EQ(useOfLayer(example(), {K, R, K}).saved, 200u);
}

TEST(LayerMemoryTest, OffloadedBytesComeBackWithTheirFirstReader) {
  LayerGraph graph = example();
  graph.ops[1].offloadSeconds = 5;
  LayerUse use = useOfLayer(graph, {K, O, K});
  EXPECT_EQ(use.saved, 200u);
  EXPECT_EQ(use.forwardPeak, 600u);
  EXPECT_EQ(use.backwardPeak, 1000u);
  EXPECT_EQ(use.seconds, 5);
}

TEST(LayerMemoryTest, ResultsTakeOverWhatDies) {
  LayerGraph graph = example();
  graph.ops[3].results[0].takesOver = 2; // db in the place of b
  EXPECT_EQ(useOfLayer(graph, {K, K, K}).backwardPeak, 600u);
  graph.ops[4].operands.push_back(2); // b is read later
  EXPECT_EQ(useOfLayer(graph, {K, K, K}).backwardPeak, 1000u);
}

TEST(LayerMemoryTest, OtherLayersThatReadParametersGoInFrontOfTheRun) {
  LayerGraph graph = example();
  graph.ops[0].readsParameters = true;
  graph.ops[0].run = 0;
  for (int op : {1, 2, 3, 4, 5})
    graph.ops[op].run = 1;
  graph.ops[5].run = 0;
  // An op of the run that needs nothing of it comes first; it ends before a and b are there unless a goes in
  // front.
  LayerGraph::Op first;
  first.workspace = 1000;
  first.run = 1;
  graph.ops.insert(graph.ops.begin() + 3, first);
  for (LayerGraph::Value &value : graph.values)
    if (value.producer >= 3)
      ++value.producer;
  EXPECT_EQ(useOfLayer(graph, {R, R, K}).backwardPeak, 1000u + 100 + 100); // a, dy
  graph.ops[0].readsParameters = false;
  EXPECT_EQ(useOfLayer(graph, {R, R, K}).backwardPeak, 1000u + 100); // dy
}

TEST(LayerOptionsTest, NoneIsBeatenByACheaperOne) {
  std::vector<LayerOption> options = layerOptions(example());
  ASSERT_EQ(options.size(), 4u);
  EXPECT_EQ(options[0].choices, (Choices{K, K, K}));
  EXPECT_EQ(options[1].choices, (Choices{R, K, K}));
  EXPECT_EQ(options[2].choices, (Choices{K, R, K}));
  EXPECT_EQ(options[3].choices, (Choices{R, R, K}));
  EXPECT_EQ(smallestOptions(example()).front().choices, (Choices{R, R, K}));
}

TEST(LayerOptionsTest, OneChangeAtATimeFindsWhatAllSubsetsDo) {
  // A long chain of equal ops: too many for all subsets.
  LayerGraph graph;
  graph.values.resize(41);
  graph.forwardOps = 16;
  for (int i = 0; i < 16; ++i) {
    graph.values[i + 1].bytes = 100;
    graph.values[i + 1].producer = i;
    LayerGraph::Op op;
    op.operands = {i};
    op.results = {{i + 1, -1}};
    op.seconds = 1 + i % 3;
    op.mayRecompute = i < 15;
    graph.ops.push_back(op);
  }
  for (int i = 16; i > 0; --i) {
    LayerGraph::Op op;
    op.operands = {i};
    graph.ops.push_back(op);
  }
  std::vector<LayerOption> options = layerOptions(graph);
  EXPECT_EQ(options.front().use.saved, 1600u);
  EXPECT_EQ(options.back().use.saved, 100u);
  EXPECT_GT(options.size(), 8u);
}

} // namespace
} // namespace ft::compiler
