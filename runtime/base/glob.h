// Patterns of names, as users give them.
#pragma once

#include <string_view>

namespace ft {

// Whether `name` is of the form `pattern`, in which * stands for any text and ? for one character.
bool MatchesGlob(std::string_view pattern, std::string_view name);

}  // namespace ft
