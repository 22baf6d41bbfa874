// The rows of runtime/base/elementwise.def as lanes: the table's own expressions, with lane_math.h for their
// letters and functions.
#include "compiler/codegen/elements.h"

#include <string_view>

namespace ft::compiler {
namespace {

constexpr bool takesFunction(std::string_view value) {
  for (std::string_view function :
       {"Exp(", "Log(", "Pow(", "Sin(", "Cos(", "Tanh(", "Sigmoid(", "Erf(", "NormalCdf("})
    if (value.find(function) != std::string_view::npos)
      return true;
  return false;
}

constexpr bool kElementary[] = {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary)              \
  takesFunction(#value),
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
};

} // namespace

bool isElementary(Elementwise kind) { return kElementary[static_cast<size_t>(kind)]; }

Lanes elementwiseValue(const ElementwiseRow &row, llvm::ArrayRef<Lanes> operands,
                       llvm::ArrayRef<double> parameters) {
  Lanes a = operands[0];
  Lanes b = operands.size() > 1 ? operands[1] : a;
  Lanes c = operands.size() > 2 ? operands[2] : b;
  // Numbers of rows are of the type of their operands; beside floats they are f32.
  auto K = [&](double number) { return constant(b, number); };
  auto number = [&](size_t index) {
    double value = index < parameters.size() ? parameters[index] : 0;
    return isFloat(b) ? static_cast<double>(static_cast<float>(value)) : value;
  };
  [[maybe_unused]] double p = number(0), q = number(1);
  switch (row.kind) {
#define FT_ELEMENTWISE(Name, mnemonic, domain, count, names, value, gradients, summary)                      \
  case Elementwise::k##Name:                                                                                 \
    return value;
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
  }
  return a;
}

} // namespace ft::compiler
