// What an instruction is called where times of many are added up.
#pragma once

#include <string>

#include "runtime/plan/plan.pb.h"

namespace ft {

// "matmul", "all_gather", "copy to the host", "update on the host".
std::string KindOf(const proto::Instruction& instruction);

}  // namespace ft
