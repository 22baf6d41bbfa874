// The table of elementwise primitives, elementwise.def, as data.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace ft {

// Types of operands and result; i1 is held as a byte, 0 or 1.
enum class ElementwiseDomain : uint8_t {
  kFloat,    // floats to a float; each operand may have a float type of its own
  kInteger,  // integers of one type to that type
  kNumber,   // kFloat or kInteger
  kCompare,  // floats, or integers of one type, to i1
  kLogic,    // i1 to i1
  kSelect,   // i1 and two of kNumber, or two of i1, to their type
};

enum class Elementwise : uint8_t {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) k##Name,
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
};

struct ElementwiseRow {
  Elementwise kind;
  std::string_view name;
  ElementwiseDomain domain;
  int operands;                                // 1 ... 3
  std::array<std::string_view, 2> parameters;  // names of p and q; empty where there is none
  bool flat;                                   // has no derivative: its gradient is Zero()
  std::string_view summary;

  constexpr int num_parameters() const { return parameters[0].empty() ? 0 : parameters[1].empty() ? 1 : 2; }
};

inline constexpr int kMaxElementwiseOperands = 3;

namespace elementwise_detail {
constexpr std::array<std::string_view, 2> Names(std::string_view p = {}, std::string_view q = {}) {
  return {p, q};
}
}  // namespace elementwise_detail

// In the order of the enumeration.
inline constexpr ElementwiseRow kElementwiseRows[] = {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) \
  {Elementwise::k##Name,                                                                        \
   #mnemonic,                                                                                   \
   ElementwiseDomain::domain,                                                                   \
   operands,                                                                                    \
   elementwise_detail::Names parameters,                                                        \
   std::string_view(#gradients) == "(Zero())",                                                  \
   summary},
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
};

constexpr const ElementwiseRow& RowOf(Elementwise kind) { return kElementwiseRows[static_cast<int>(kind)]; }

}  // namespace ft
