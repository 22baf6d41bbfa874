#include "compiler/codegen/x86/kept_values.h"

#include "llvm/ADT/STLExtras.h"

namespace ft::compiler {
namespace {

class KeptValues {
public:
  KeptValues(const BodyFacts &facts, ArrayRef<EarlyResult> early)
      : facts(facts), body(facts.body), early(early) {
    for (uint32_t reduction : facts.reductions(facts.lastLevel - 1))
      facts.reach(facts.op(reduction).operands[0], written(), inLastPass);
  }

  llvm::SmallVector<KeptValue> all() const {
    llvm::SmallVector<KeptValue> kept;
    for (auto [number, output] : llvm::enumerate(body.outputs))
      if (!output.over_rows && output.place.column_stride == 1 &&
          body.results[output.result].dtype == DType::kF32 && !isEarly(number))
        if (std::optional<uint32_t> value = valueFor(output, kept))
          kept.push_back({*value, number});
    return kept;
  }

private:
  using Values = BodyFacts::Values;

  Values written() const {
    Values values;
    for (const EarlyResult &result : early)
      values.insert(result.value);
    return values;
  }

  bool isEarly(size_t output) const {
    return llvm::any_of(early, [&](const EarlyResult &result) { return result.output == output; });
  }

  Values neededForResults(const Values &known) const {
    Values needed;
    for (const ClusterBody::Output &output : body.outputs)
      facts.reach(output.value, known, needed);
    return needed;
  }

  // The last one is made of the others.
  std::optional<uint32_t> valueFor(const ClusterBody::Output &output, ArrayRef<KeptValue> others) const {
    Values forResults = neededForResults(written());
    for (uint32_t value = body.values(); value-- > body.reads.size();)
      if (isCostly(value) && inLastPass.contains(value) && forResults.contains(value) &&
          llvm::none_of(others, [&](KeptValue other) { return other.value == value; }) &&
          isFree(output.result, value))
        return value;
    return std::nullopt;
  }

  bool isCostly(uint32_t value) const {
    return facts.takesFunction(value) && facts.op(value).dtype == DType::kF32;
  }

  // No input that may lie where the result does is read for results, given `known`.
  bool isFree(uint32_t result, uint32_t known) const {
    Values there = written();
    there.insert(known);
    return llvm::none_of(neededForResults(there), [&](uint32_t value) {
      return facts.isRead(value) && MayTakePlaceOf(body, body.reads[value].input, result);
    });
  }

  const BodyFacts &facts;
  const ClusterBody &body;
  ArrayRef<EarlyResult> early;
  Values inLastPass; // of reductions
};

} // namespace

llvm::SmallVector<KeptValue> keptValuesOf(const BodyFacts &facts, ArrayRef<EarlyResult> early) {
  return facts.lastLevel == 0 ? llvm::SmallVector<KeptValue>() : KeptValues(facts, early).all();
}

} // namespace ft::compiler
