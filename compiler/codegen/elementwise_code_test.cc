// Every row of the table of elementwise primitives alone, against f64.
#include "compiler/codegen/testing/elementwise_cases.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

class ElementwiseCodeTest : public CodeTest {};

TEST_F(ElementwiseCodeTest, EveryRowInEveryTypeAndShape) {
  eachElementwiseCase(context, kShapes, [&](ElementwiseCase &test) {
    for (auto &[level, results] : run(test.body(), test.inputs)) {
      SCOPED_TRACE(nameOf(level).str());
      compare(test, results[0], level != X86Level::V2);
    }
  });
}

} // namespace
} // namespace ft::compiler::testing
