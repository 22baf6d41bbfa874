#include "compiler/codegen/x86/kept_values.h"

#include <string_view>

#include "llvm/ADT/STLExtras.h"

namespace ft::compiler {
namespace {

using Op = ClusterBody::Op;

// Whether a row of the table takes a function that is worth many operations.
constexpr bool isElementary(std::string_view value) {
  for (std::string_view function :
       {"Exp(", "Log(", "Pow(", "Sin(", "Cos(", "Tanh(", "Sigmoid(", "Erf(", "NormalCdf("})
    if (value.find(function) != std::string_view::npos)
      return true;
  return false;
}

constexpr bool kElementary[] = {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary)              \
  isElementary(#value),
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
};

class KeptValues {
public:
  explicit KeptValues(const BodyFacts &facts) : facts(facts), body(facts.body) {
    for (uint32_t reduction : facts.reductions(facts.lastLevel - 1))
      reach(facts.op(reduction).operands[0], body.values(), inLastPass);
  }

  llvm::SmallVector<KeptValue> all() const {
    llvm::SmallVector<KeptValue> kept;
    for (auto [number, output] : llvm::enumerate(body.outputs))
      if (!output.over_rows && output.place.column_stride == 1 &&
          body.results[output.result].dtype == DType::kF32)
        if (std::optional<uint32_t> value = valueFor(output, kept))
          kept.push_back({*value, number});
    return kept;
  }

private:
  using Values = llvm::DenseSet<uint32_t>;

  // All that has columns and is computed for `value`, but for what is behind `known`.
  void reach(uint32_t value, uint32_t known, Values &reached) const {
    if (!facts.columns[value] || value == known || !reached.insert(value).second || facts.isRead(value))
      return;
    if (facts.op(value).kind != Op::Kind::kRandomBits)
      for (uint32_t operand : facts.op(value).operands)
        reach(operand, known, reached);
  }

  Values neededForResults(uint32_t known) const {
    Values needed;
    for (const ClusterBody::Output &output : body.outputs)
      reach(output.value, known, needed);
    return needed;
  }

  // The last one is made of the others.
  std::optional<uint32_t> valueFor(const ClusterBody::Output &output, ArrayRef<KeptValue> others) const {
    Values forResults = neededForResults(body.values());
    for (uint32_t value = body.values(); value-- > body.reads.size();)
      if (isCostly(value) && inLastPass.contains(value) && forResults.contains(value) &&
          llvm::none_of(others, [&](KeptValue other) { return other.value == value; }) &&
          isFree(output.result, value))
        return value;
    return std::nullopt;
  }

  bool isCostly(uint32_t value) const {
    const Op &op = facts.op(value);
    return op.kind == Op::Kind::kElementwise && op.dtype == DType::kF32 &&
           kElementary[static_cast<size_t>(op.function)];
  }

  // No input that may lie where the result does is read for results, given `known`.
  bool isFree(uint32_t result, uint32_t known) const {
    return llvm::none_of(neededForResults(known), [&](uint32_t value) {
      return facts.isRead(value) && MayTakePlaceOf(body, body.reads[value].input, result);
    });
  }

  const BodyFacts &facts;
  const ClusterBody &body;
  Values inLastPass; // of reductions
};

} // namespace

llvm::SmallVector<KeptValue> keptValuesOf(const BodyFacts &facts) {
  return facts.lastLevel == 0 ? llvm::SmallVector<KeptValue>() : KeptValues(facts).all();
}

} // namespace ft::compiler
