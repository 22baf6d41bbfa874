#include "test/conformance/residual_norm.h"

#include "runtime/base/status_macros.h"
#include "test/conformance/harness.h"

namespace ft::conformance {

std::vector<Case> ResidualNormCases() {
  std::vector<Case> cases;
  for (const char* op : {"add_layer_norm", "add_rms_norm"}) {
    for (const Case* c : CasesOf(op)) cases.push_back(*c);
  }
  return cases;
}

absl::StatusOr<Arrays> RunSumThenNorm(Bench& bench, const Case& fused) {
  const Case add = {"add", fused.label, {fused.in[0], fused.in[1]}, {}, {fused.expected[0]}};
  FT_ASSIGN_OR_RETURN(Arrays results, RunCase(bench, add, false));
  Case norm = {fused.op.substr(4), fused.label, {results[0]}, fused.attributes, {fused.expected[1]}};
  norm.in.insert(norm.in.end(), fused.in.begin() + 2, fused.in.end());
  FT_ASSIGN_OR_RETURN(const Arrays normed, RunCase(bench, norm, false));
  results.push_back(normed[0]);
  return results;
}

}  // namespace ft::conformance
