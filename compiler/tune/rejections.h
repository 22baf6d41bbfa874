// Why points were not chosen.
#pragma once

#include "compiler/tune/families.h"
#include "compiler/tune/search.h"

#include <vector>

namespace ft::compiler {

/// A line for each strategy of which something does not fit, for what changes bits, and for what was left out
/// as dominated or slow; what is neither that nor one of the `shown` points is the last. Together with
/// `shown` they are the table.
std::vector<TuneRejection> rejectionsOf(const TuneRequest &request, const TuneSpace &space,
                                        const TuneLadder &ladder, const std::vector<TuneFamily> &families,
                                        uint64_t shown);

} // namespace ft::compiler
