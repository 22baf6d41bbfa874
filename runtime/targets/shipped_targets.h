// The machines that come with the compiler, by name: those of the files beside this one, which are built into
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/target.h"

namespace ft {

// nullptr when there is none of this name. "h100" is short for "h100-ib", and so on.
const Target* FindTarget(std::string_view name);

// All of them, short names too.
std::vector<std::string> TargetNames();

}  // namespace ft
