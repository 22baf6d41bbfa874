// Every case of graph_text.h, differentiated alone and within the fusing pipeline.
#include <gtest/gtest.h>

#include "test/gradients/gradient_check.h"

namespace mlir::ft::test {
namespace {

struct Run {
  GraphCase graph;
  Pipeline pipeline;
};

void PrintTo(const Run& run, std::ostream* out) { *out << moduleText(run.graph); }

class OpGradients : public ::testing::TestWithParam<Run> {};

TEST_P(OpGradients, AgreeWithDifferences) { checkGradients(GetParam().graph, GetParam().pipeline); }

std::vector<Run> allRuns() {
  std::vector<Run> runs;
  for (const GraphCase& graph : allCases())
    for (Pipeline pipeline : {Pipeline::kPlain, Pipeline::kFused}) runs.push_back({graph, pipeline});
  return runs;
}

std::string runName(const ::testing::TestParamInfo<Run>& info) {
  std::string name = info.param.graph.name + (info.param.pipeline == Pipeline::kFused ? "_fused" : "");
  for (char& c : name)
    if (!std::isalnum(c)) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, OpGradients, ::testing::ValuesIn(allRuns()), runName);

}  // namespace

}  // namespace mlir::ft::test
