#include "compiler/codegen/early_results.h"

#include "llvm/ADT/STLExtras.h"

namespace ft::compiler {
namespace {

using Output = ClusterBody::Output;
using Values = BodyFacts::Values;

// What a pass computes or reads, given `known`.
Values neededIn(const BodyFacts &facts, int pass, const Values &known) {
  Values needed;
  if (pass < facts.lastLevel)
    for (uint32_t reduction : facts.reductions(pass))
      facts.reach(facts.op(reduction).operands[0], known, needed);
  else
    for (const Output &output : facts.body.outputs)
      facts.reach(output.value, known, needed);
  return needed;
}

// Whether a pass makes something else of `value`.
bool isReadIn(const BodyFacts &facts, int pass, uint32_t value) {
  if (pass < facts.lastLevel)
    return neededIn(facts, pass, {}).contains(value);
  return llvm::any_of(facts.body.outputs, [&](const Output &output) {
    Values reached;
    facts.reach(output.value, {}, reached);
    return reached.contains(value) && (output.value != value || output.over_rows);
  });
}

bool takesFunction(const BodyFacts &facts, uint32_t value) {
  Values reached;
  facts.reach(value, {}, reached);
  return llvm::any_of(reached, [&](uint32_t one) { return facts.takesFunction(one); });
}

bool isEarly(const BodyFacts &facts, const Output &output) {
  uint32_t value = output.value;
  if (output.over_rows || output.place.column_stride != 1 || facts.levels[value] != 0 ||
      facts.body.dtype(value) != facts.body.results[output.result].dtype || !takesFunction(facts, value) ||
      !isReadIn(facts, 0, value))
    return false;
  for (int pass = 1; pass <= facts.lastLevel; ++pass)
    for (uint32_t needed : neededIn(facts, pass, {value}))
      if (facts.isRead(needed) && MayTakePlaceOf(facts.body, facts.body.reads[needed].input, output.result))
        return false;
  return true;
}

} // namespace

llvm::SmallVector<EarlyResult> earlyResultsOf(const BodyFacts &facts) {
  llvm::SmallVector<EarlyResult> early;
  if (facts.lastLevel == 0)
    return early;
  for (auto [number, output] : llvm::enumerate(facts.body.outputs)) {
    if (!isEarly(facts, output))
      continue;
    early.push_back({output.value, number, {false}});
    for (int pass = 1; pass <= facts.lastLevel; ++pass)
      early.back().passes.push_back(isReadIn(facts, pass, output.value));
  }
  return early;
}

} // namespace ft::compiler
