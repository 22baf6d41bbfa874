// The keys of a machine's file: what each stands for.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/target.h"

namespace ftc {

struct Figure {
  enum class Needed { kYes, kNo };
  // "links.node.gigabytes_per_s"; each * stands for a name of the file's own, "attention.*.forward.*".
  std::string key;
  Needed needed = Needed::kYes;
  // `names` are those that stand for the *. Returns what is wrong with the text, empty when nothing is.
  std::function<std::string(const std::vector<std::string>& names, const std::string& text,
                            ft::Target& target)>
      set;
};

const std::vector<Figure>& Figures();

// The figure of a key, with the names that stand for its *; null for none.
struct FoundFigure {
  const Figure* figure = nullptr;
  std::vector<std::string> names;
};
FoundFigure FindFigure(std::string_view key);

// Whether `key` has keys of its own.
bool IsSection(std::string_view key);

}  // namespace ftc
