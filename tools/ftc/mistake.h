// A usage error: what a command line cannot mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/did_you_mean.h"

namespace ftc {

// A usage error, worded for the user.
struct Mistake {
  std::string message;
};

template <typename Names>
[[noreturn]] void Unknown(std::string_view what, const std::string& word, const Names& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw Mistake{ft::UnknownName(what, word, views)};
}

}  // namespace ftc
