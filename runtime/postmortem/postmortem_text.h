// What ftc postmortem prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/postmortem/read_reports.h"

namespace ft {

// The diagnosis first, then who waited where, how far the ranks were, and all of them, alike ones in a row.
// `others`: those of the folder beside `attempt`, which may be among them. `plan_hash`: of a plan that should
// be the run's; empty: none was given.
std::string PostmortemText(const Attempt& attempt, const std::vector<Attempt>& others,
                           const std::vector<std::string>& remarks, const std::string& plan_hash = "");

}  // namespace ft
