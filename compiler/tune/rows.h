// Of points that were compiled whole, which are shown.
#pragma once

#include "compiler/tune/search.h"

#include <vector>

namespace ft::compiler {

constexpr size_t kShown = 10;

/// The fastest first, ten at most; of those that take the same time and memory, as schedules do that come to
/// the same, the first of the table.
std::vector<TuneRow> bestOf(std::vector<TuneRow> rows);

/// Those that nothing is as fast as with as little memory; the fastest first.
std::vector<TuneRow> frontOf(std::vector<TuneRow> rows);

} // namespace ft::compiler
