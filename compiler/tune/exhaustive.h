// The table, walked wholly: what a search is held against.
#pragma once

#include "compiler/tune/search.h"

namespace ft::compiler {

/// As searchTuneSpace, with every point compiled whole; no bound and no rejections.
absl::StatusOr<TuneResult> searchWholeTuneSpace(const TuneRequest &request, const TuneSpace &space,
                                                const TuneProgress &progress);

} // namespace ft::compiler
