// How messages speak of the parts of a plan.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/plan.pb.h"

namespace ft {

// "matmul", or "all_gather transformer.h.3", "copy_in transformer.h.3.exp_avg", "wait", ...; " +2" behind it
// counts the further parts of a bucket. Tolerates plans that are not verified.
std::string InstructionTitle(const proto::Plan& plan, const proto::Instruction& instruction);

// "train_step, instruction 12 (matmul, layer transformer.h.0)".
std::string InstructionPlace(const proto::Plan& plan, int program, int instruction);

// "'transformer.h.0.gathered'", or "'buffer 7'" when it has no name.
std::string BufferName(const proto::Plan& plan, uint32_t buffer);

}  // namespace ft
