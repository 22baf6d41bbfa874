// Compares docs/reference/optimizers.md with the table of optimizers, or writes it: optimizers_docs FILE
// [--write]
#include <map>
#include <string>
#include <vector>

#include "compiler/optimizer/rules.h"
#include "fmt/format.h"
#include "runtime/base/expression.h"
#include "test/docs/generated_page.h"

namespace {

using ft::compiler::Hyperparameter;
using ft::compiler::Hyperparameters;
using ft::compiler::OptimizerRule;
using ft::compiler::Update;

void AppendFormulas(std::string_view formulas, std::string_view of, std::string& text) {
  if (formulas.empty()) return;
  if (!of.empty()) text += fmt::format("{}\n\n", of);
  for (const std::string_view formula : ft::SplitTrimmed(formulas, ';'))
    text += fmt::format("    {}\n", formula);
  text += "\n";
}

void AppendUpdate(const OptimizerRule& rule, const Hyperparameters& values, const std::string& when,
                  std::string& text) {
  const auto update = rule.update(values);
  if (!update.ok()) return;
  if (!when.empty()) text += fmt::format("{}:\n\n", when);
  AppendFormulas(update->direction, "", text);
  AppendFormulas(update->matrices, "Of a matrix, whole:", text);
  AppendFormulas(update->vectors, "Of any other parameter, whole:", text);
  AppendFormulas(update->formulas, update->looksAtWhole() ? "Then, of each element:" : "", text);
  text += "State: ";
  if (update->states.empty()) text += "none";
  constexpr std::string_view kOf[] = {"each element", "each row", "each column", "each element of a vector"};
  for (size_t i = 0; i < update->states.size(); ++i)
    text += fmt::format("{}`{}`, 4 bytes for {}", i == 0 ? "" : "; ", update->states[i].name,
                        kOf[static_cast<int>(update->states[i].kind)]);
  text += ".\n\n";
}

std::string RangeOf(const Hyperparameter& h) {
  const std::string low = fmt::format("{}{}", h.aboveLow ? "above " : "", h.low);
  return h.below < 1e300 ? fmt::format("{} to below {}", low, h.below) : low + (h.aboveLow ? "" : " or more");
}

std::string Page() {
  std::string text =
      "# Optimizers\n\n"
      "Generated from `compiler/optimizer/rules.cc`; `ninja -C build reference_docs` writes it. "
      "[decisions](../decisions/optimizers-as-bodies.md) says how it "
      "is read.\n\n"
      "`gradient` is clipped; what stands in brackets is a number of the step, computed in f64 and rounded "
      "to f32 once, with `t` from 1 and "
      "`weight_decay` 0 for parameters of rank 1. Assignments are made in order. States are f32 and 0 at "
      "first; their names are those in checkpoints. Where a rule looks at parameters whole, what it makes of "
      "a `direction` takes its place: `row_means` and `column_means` are over the last dimension and the "
      "last "
      "but one, which then have an extent of 1 and are repeated, `root_mean_square` is of all elements, and "
      "`orthogonalized` is `ft.orthogonalize`.\n\n";
  for (const OptimizerRule& rule : ft::compiler::optimizerRules()) {
    text += fmt::format("## {}\n\n{}.\n\n", rule.name, rule.summary);
    Hyperparameters values = {{"momentum", 0}, {"nesterov", 0}};
    std::string line;
    for (const Hyperparameter& h : rule.hyperparameters) {
      values[std::string(h.name)] = h.low;
      line += fmt::format("{}`{}` ({})", line.empty() ? "" : ", ", h.name, RangeOf(h));
    }
    text += fmt::format("Settings: {}.", line);
    for (const auto& [setting, usual] : rule.usual)
      text += fmt::format(" Where nothing is said `{}` is {}.", setting, usual);
    text += "\n\n";
    if (rule.has("scale_parameter")) {
      values["scale_parameter"] = 1;
      AppendUpdate(rule, values, "With `scale_parameter`", text);
      values["scale_parameter"] = 0;
      AppendUpdate(rule, values, "Without", text);
      continue;
    }
    if (!rule.has("momentum")) {
      AppendUpdate(rule, values, "", text);
      continue;
    }
    AppendUpdate(rule, values, "Without momentum", text);
    values["momentum"] = 0.5;
    AppendUpdate(rule, values, "With momentum", text);
    values["nesterov"] = 1;
    AppendUpdate(rule, values, "With Nesterov's", text);
  }
  text.pop_back();
  return text;
}

}  // namespace

int main(int argc, char** argv) { return ft::GeneratedPage(argc, argv, Page()); }
