// Why points were not chosen.
#pragma once

#include "compiler/tune/families.h"
#include "compiler/tune/search.h"

#include <vector>

namespace ft::compiler {

/// A line for each strategy of which something does not fit, and for what was left out as dominated or slow.
std::vector<TuneRejection> rejectionsOf(const TuneRequest &request, const TuneSpace &space,
                                        const TuneLadder &ladder, const std::vector<TuneFamily> &families);

} // namespace ft::compiler
