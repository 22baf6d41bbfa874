#include "runtime/base/step_scalar_formulas.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "fmt/format.h"
#include "runtime/base/expression.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

using Kind = ScalarOpKind;

struct Word {
  const char* name;
  Kind kind;
  size_t operands;
};
constexpr Word kWords[] = {{"clip", Kind::kClip, 0},
                           {"lr", Kind::kLr, 0},
                           {"t", Kind::kT, 0},
                           {"weight_decay", Kind::kWeightDecay, 0},
                           {"inverse_ranks", Kind::kInverseRanks, 0},
                           {"add", Kind::kAdd, 2},
                           {"sub", Kind::kSub, 2},
                           {"mul", Kind::kMul, 2},
                           {"div", Kind::kDiv, 2},
                           {"pow", Kind::kPow, 2},
                           {"neg", Kind::kNeg, 1},
                           {"sqrt", Kind::kSqrt, 1},
                           {"min", Kind::kMin, 2},
                           {"max", Kind::kMax, 2}};

// Appends `expression`; what is on the stack before it counts in `depth`.
absl::Status Append(const Expression& expression, int depth, int& used, StepScalars& scalars) {
  for (const Expression& operand : expression.operands)
    FT_RETURN_IF_ERROR(Append(operand, depth++, used, scalars));
  if (used == kMaxScalarOps || depth >= kMaxScalarStack)
    return absl::InvalidArgumentError("the formulas are too long");
  ScalarOp& op = scalars.ops[used++];
  op = {Kind::kNumber, expression.number};
  if (expression.kind == Expression::Kind::kNumber) return absl::OkStatus();
  const bool is_call = expression.kind == Expression::Kind::kCall;
  const auto* word = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& w) {
    return expression.kind != Expression::Kind::kBracket && w.name == expression.name &&
           w.operands == expression.operands.size() && (w.operands != 0) == is_call;
  });
  if (word == std::end(kWords))
    return absl::InvalidArgumentError(fmt::format("there is no '{}' of {} operands in a formula of a step",
                                                  expression.name, expression.operands.size()));
  op.kind = word->kind;
  return absl::OkStatus();
}

double Applied(Kind kind, double a, double b) {
  switch (kind) {
    case Kind::kAdd:
      return a + b;
    case Kind::kSub:
      return a - b;
    case Kind::kMul:
      return a * b;
    case Kind::kDiv:
      return a / b;
    case Kind::kPow:
      return std::pow(a, b);
    case Kind::kMin:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

}  // namespace

absl::StatusOr<StepScalars> ReadStepScalars(std::string_view text, double weight_decay) {
  StepScalars scalars;
  scalars.weight_decay = weight_decay;
  int used = 0;
  for (const std::string_view formula : SplitTrimmed(text, ';')) {
    if (scalars.count == kMaxStepScalars)
      return absl::InvalidArgumentError(fmt::format("there are more than {} formulas", kMaxStepScalars));
    FT_ASSIGN_OR_RETURN(const Expression expression, ParseExpression(formula));
    FT_RETURN_IF_ERROR(Append(expression, 0, used, scalars));
    scalars.ends[scalars.count++] = used;
  }
  return scalars;
}

double StepScalarAt(const StepScalars& scalars, int index, bool decays, const StepValues& values) {
  double stack[kMaxScalarStack + 1];
  int top = 0;
  for (int i = index == 0 ? 0 : scalars.ends[index - 1]; i < scalars.ends[index]; ++i) {
    const ScalarOp& op = scalars.ops[i];
    switch (op.kind) {
      case Kind::kNumber:
        stack[top++] = op.number;
        break;
      case Kind::kClip:
        stack[top++] = double{values.clip};
        break;
      case Kind::kLr:
        stack[top++] = double{values.lr};
        break;
      case Kind::kT:
        stack[top++] = static_cast<double>(values.step) + 1.0;
        break;
      case Kind::kWeightDecay:
        stack[top++] = decays ? scalars.weight_decay : 0.0;
        break;
      case Kind::kInverseRanks:
        stack[top++] = double{values.inverse_ranks};
        break;
      case Kind::kNeg:
        stack[top - 1] = -stack[top - 1];
        break;
      case Kind::kSqrt:
        stack[top - 1] = std::sqrt(stack[top - 1]);
        break;
      default:
        --top;
        stack[top - 1] = Applied(op.kind, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

bool IsConstant(const StepScalars& scalars, int index) {
  const ScalarOp* const begin = scalars.ops + (index == 0 ? 0 : scalars.ends[index - 1]);
  return std::none_of(begin, scalars.ops + scalars.ends[index], [](const ScalarOp& op) {
    return op.kind >= Kind::kClip && op.kind <= Kind::kInverseRanks;
  });
}

bool UsesInverseRanks(const StepScalars& scalars) {
  const int used = scalars.count == 0 ? 0 : scalars.ends[scalars.count - 1];
  return std::any_of(scalars.ops, scalars.ops + used,
                     [](const ScalarOp& op) { return op.kind == Kind::kInverseRanks; });
}

}  // namespace ft
