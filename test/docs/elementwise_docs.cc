// docs/reference/elementwise.md, from the table of elementwise primitives.
#include <string>

#include "fmt/format.h"
#include "runtime/base/elementwise.h"
#include "test/docs/generated_page.h"

namespace {

const char* Types(ft::ElementwiseDomain domain) {
  switch (domain) {
    case ft::ElementwiseDomain::kFloat:
      return "floats";
    case ft::ElementwiseDomain::kInteger:
      return "i32 or i64";
    case ft::ElementwiseDomain::kNumber:
      return "floats, i32 or i64";
    case ft::ElementwiseDomain::kCompare:
      return "floats, i32 or i64 -> i1";
    case ft::ElementwiseDomain::kLogic:
      return "i1";
    case ft::ElementwiseDomain::kSelect:
      return "i1 and any two alike";
  }
  return "";
}

// "ft.clamp %a, min, max"
std::string Form(const ft::ElementwiseRow& row) {
  std::string text = fmt::format("ft.{}", row.name);
  for (int i = 0; i < row.operands; ++i) text += fmt::format("{} %{}", i == 0 ? "" : ",", "abc"[i]);
  for (int i = 0; i < row.num_parameters(); ++i) text += fmt::format(", {}", row.parameters[i]);
  return text;
}

std::string Page() {
  std::string page =
      "<!-- Written by elementwise_docs from runtime/base/elementwise.def; run: ninja -C build "
      "reference_docs -->\n\n"
      "# Elementwise primitives\n\n"
      "Operands have the shape of the result or its last dimensions, and then are repeated. Floats may be "
      "f32, bf16 and f16, each\n"
      "operand its own: computation is in f32 and rounded once. Types stand behind a colon, one for each "
      "operand or one for all, and\n"
      "that of the result where it is not the first of the largest shape: `ft.mul %a, %b : tensor<2x3xf32>, "
      "tensor<3xf32>`.\n"
      "Gradients at ties, at 0 and at the ends of clamp are PyTorch's.\n\n"
      "| op | types | is |\n|---|---|---|\n";
  for (const ft::ElementwiseRow& row : ft::kElementwiseRows) {
    std::string summary;
    for (char c : row.summary) summary += c == '|' ? std::string("\\|") : std::string(1, c);
    page += fmt::format("| `{}` | {} | {} |\n", Form(row), Types(row.domain), summary);
  }
  return page;
}

}  // namespace

int main(int argc, char** argv) { return ft::GeneratedPage(argc, argv, Page()); }
