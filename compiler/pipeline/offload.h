// What lives in host memory, as words: "optimizer:step,activations".
#pragma once

#include "compiler/pipeline/options.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ft::compiler {

/// Beside what the word before the colon says.
inline constexpr std::string_view kOffloadStep = "optimizer:step";

inline constexpr std::pair<std::string_view, bool CompileOptions::*> kOffloadParts[] = {
    {"optimizer", &CompileOptions::offloadOptimizer},
    {kOffloadStep, &CompileOptions::offloadStep},
    {"parameters", &CompileOptions::offloadParameters},
    {"activations", &CompileOptions::offloadActivations}};

/// Offloads these parts and no others. The first word that names none; empty: all do, and the options are
/// set.
inline std::string setOffload(const std::vector<std::string> &words, CompileOptions &options) {
  CompileOptions read;
  for (const std::string &word : words) {
    const auto *part = std::find_if(std::begin(kOffloadParts), std::end(kOffloadParts),
                                    [&](const auto &known) { return known.first == word; });
    if (part == std::end(kOffloadParts))
      return word;
    read.*part->second = true;
  }
  read.offloadOptimizer |= read.offloadStep;
  for (const auto &[name, field] : kOffloadParts)
    options.*field = read.*field;
  return "";
}

/// The words, joined by commas; "none".
inline std::string offloadText(const CompileOptions &options) {
  std::string text;
  for (const auto &[name, field] : kOffloadParts) {
    const bool isSaidByStep = field == &CompileOptions::offloadOptimizer && options.offloadStep;
    if (options.*field && !isSaidByStep)
      text += (text.empty() ? "" : ",") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

} // namespace ft::compiler
