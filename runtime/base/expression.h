// Formulas as text: "lr / (1 - 0.9^t)". Sums, products, powers (from the right), a sign in front, calls,
// names and numbers; and, in brackets, text for someone else: "exp_avg * [beta1]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ft {

struct Expression {
  enum class Kind { kNumber, kName, kBracket, kCall };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string
      name;  // of a name or a call ("add", "sub", "mul", "div", "pow", "neg" for signs); what brackets hold
  std::vector<Expression> operands = {};
};

// InvalidArgument says what is wrong with the text, and where.
absl::StatusOr<Expression> ParseExpression(std::string_view text);

// `text` at every `separator`, without blanks around the parts.
std::vector<std::string_view> SplitTrimmed(std::string_view text, char separator);

}  // namespace ft
