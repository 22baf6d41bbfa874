// Ranks in messages.
#pragma once

#include <string>
#include <vector>

namespace ft {

// Of ascending ranks: "rank 3", "ranks 0-2,5,6"; of many parts the first ones, and how many more ranks there
// are.
std::string RanksText(const std::vector<int>& ranks);

}  // namespace ft
