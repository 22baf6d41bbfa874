// Buffers and instructions of a plan for the report: a table of columns each, so that a plan of a hundred
// thousand rows stays small.
#pragma once

#include "nlohmann/json.hpp"
#include "tools/ftc/explain.h"
#include "tools/ftc/report/names.h"

namespace ftc {

// "gather"
std::string StreamKey(ft::proto::Stream stream);

// By index of the plan: name, class, layer, space, bytes (rounded up to 256, as reports count them),
// persistent; of those that are not: program, first, last. Buffers without bytes have 0.
nlohmann::ordered_json BuffersJson(const Explained& explained, Names& names);

// All programs, with what each instruction does and when it would run on the target. Seconds of the program
// are exact; those of instructions are whole nanoseconds.
nlohmann::ordered_json ProgramsJson(const Explained& explained, Names& names);

}  // namespace ftc
