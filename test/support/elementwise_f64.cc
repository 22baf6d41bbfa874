#include "test/support/elementwise_f64.h"

#include <cmath>

namespace ft::test {
namespace {

double K(double number) { return number; }
bool IsNan(double a) { return std::isnan(a); }
double Select(double condition, double a, double b) { return condition != 0 ? a : b; }
double Abs(double a) { return std::fabs(a); }
double Sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : a; }
double Floor(double a) { return std::floor(a); }
double Exp(double a) { return std::exp(a); }
double Log(double a) { return std::log(a); }
double Sqrt(double a) { return std::sqrt(a); }
double Pow(double a, double exponent) { return std::pow(a, exponent); }
double Sin(double a) { return std::sin(a); }
double Cos(double a) { return std::cos(a); }
double Tanh(double a) { return std::tanh(a); }
double Sigmoid(double a) { return 1 / (1 + std::exp(-a)); }
double Erf(double a) { return std::erf(a); }
double NormalCdf(double a) { return 0.5 * std::erfc(-a * std::sqrt(0.5)); }

// A truth value as its operators have it.
struct Truth {
  bool value;
  Truth(double number) : value(number != 0) {}
  Truth(bool truth) : value(truth) {}
  operator double() const { return value ? 1 : 0; }
};
Truth operator&(Truth a, Truth b) { return a.value && b.value; }
Truth operator|(Truth a, Truth b) { return a.value || b.value; }
Truth operator!(Truth a) { return !a.value; }

}  // namespace

double EvaluateElementwise(Elementwise kind, const double (&operands)[kMaxElementwiseOperands],
                           const double (&parameters)[2]) {
  const double p = parameters[0], q = parameters[1];
  // Letters that logic rows take are truth values, those of all others numbers.
  const auto evaluate = [&](auto a, auto b, auto c, auto row) -> double { return row(a, b, c); };
  switch (kind) {
#define FT_ELEMENTWISE(Name, mnemonic, domain, count, names, value, gradients, summary) \
  case Elementwise::k##Name: {                                                          \
    const auto row = [&]([[maybe_unused]] auto a, [[maybe_unused]] auto b,              \
                         [[maybe_unused]] auto c) -> double { return value; };          \
    if constexpr (ElementwiseDomain::domain == ElementwiseDomain::kLogic) {             \
      return evaluate(Truth(operands[0]), Truth(operands[1]), Truth(operands[2]), row); \
    } else {                                                                            \
      return evaluate(operands[0], operands[1], operands[2], row);                      \
    }                                                                                   \
  }
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
  }
  return 0;
}

}  // namespace ft::test
