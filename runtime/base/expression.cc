#include "runtime/base/expression.h"

#include <cctype>
#include <charconv>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr int kMaxDepth = 64;  // of what may come from a file

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Expression> Whole() {
    FT_ASSIGN_OR_RETURN(Expression result, Sum());
    Skip();
    if (at_ != text_.size()) return Mistake("an operator");
    return result;
  }

 private:
  using Result = absl::StatusOr<Expression>;

  Result Sum() {
    FT_ASSIGN_OR_RETURN(Expression left, Product());
    while (const char sign = Take("+-")) {
      FT_ASSIGN_OR_RETURN(Expression right, Product());
      left = Call(sign == '+' ? "add" : "sub", std::move(left), std::move(right));
    }
    return left;
  }

  Result Product() {
    FT_ASSIGN_OR_RETURN(Expression left, Signed());
    while (const char sign = Take("*/")) {
      FT_ASSIGN_OR_RETURN(Expression right, Signed());
      left = Call(sign == '*' ? "mul" : "div", std::move(left), std::move(right));
    }
    return left;
  }

  Result Signed() {
    if (++depth_ > kMaxDepth) return absl::InvalidArgumentError("is nested too deeply");
    Result result = Take("-") ? Negated() : Power();
    --depth_;
    return result;
  }

  Result Negated() {
    FT_ASSIGN_OR_RETURN(Expression operand, Signed());
    Expression result = {.kind = Expression::Kind::kCall, .name = "neg"};
    result.operands.push_back(std::move(operand));
    return result;
  }

  Result Power() {
    FT_ASSIGN_OR_RETURN(Expression base, Primary());
    if (!Take("^")) return base;
    FT_ASSIGN_OR_RETURN(Expression exponent, Signed());
    return Call("pow", std::move(base), std::move(exponent));
  }

  Result Primary() {
    if (Take("(")) {
      FT_ASSIGN_OR_RETURN(Expression inside, Sum());
      if (!Take(")")) return Mistake("')'");
      return inside;
    }
    if (Take("[")) {
      const size_t end = text_.find(']', at_);
      if (end == std::string_view::npos) return Mistake("']'");
      const std::string_view inside = text_.substr(at_, end - at_);
      at_ = end + 1;
      return Expression{.kind = Expression::Kind::kBracket, .name = std::string(inside)};
    }
    Skip();
    if (at_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[at_])) != 0)) return Name();
    return Number();
  }

  Result Name() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    Expression result = {.kind = Expression::Kind::kName,
                         .name = std::string(text_.substr(begin, at_ - begin))};
    if (!Take("(")) return result;
    result.kind = Expression::Kind::kCall;
    do {
      FT_ASSIGN_OR_RETURN(Expression operand, Sum());
      result.operands.push_back(std::move(operand));
    } while (Take(",") != 0);
    if (!Take(")")) return Mistake("')'");
    return result;
  }

  Result Number() {
    Expression result;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), result.number);
    if (error != std::errc() || end == begin) return Mistake("a number or a name");
    at_ += static_cast<size_t>(end - begin);
    return result;
  }

  static Expression Call(const char* name, Expression left, Expression right) {
    Expression result = {.kind = Expression::Kind::kCall, .name = name};
    result.operands.push_back(std::move(left));
    result.operands.push_back(std::move(right));
    return result;
  }

  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  // The next character if it is one of these, else 0.
  char Take(std::string_view characters) {
    Skip();
    if (at_ == text_.size() || characters.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }

  absl::Status Mistake(const char* expected) const {
    return absl::InvalidArgumentError(fmt::format("'{}' needs {} at character {}", text_, expected, at_ + 1));
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<Expression> ParseExpression(std::string_view text) { return Parser(text).Whole(); }

std::vector<std::string_view> SplitTrimmed(std::string_view text, char separator) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    const size_t first = std::min(part.find_first_not_of(kBlanks), part.size());
    part = part.substr(first, part.find_last_not_of(kBlanks) + 1 - first);
    parts.push_back(part);
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace ft
