// What ended an attempt, in words.
#pragma once

#include <string>
#include <vector>

#include "runtime/postmortem/positions.h"

namespace ft {

// One or two sentences for a person: who ended it and where that rank stood, or who held up whom. Names and
// errors in them are as the reports have them.
std::string Diagnose(const Attempt& attempt, const std::vector<Gathering>& gatherings);

// Where a rank stood: "computing step 41, in matmul (train_step, instruction 12, layer h.0)". Without times:
// ranks that stand alike have the same.
std::string Standing(const RankReport& report);

// For how long, in seconds; negative: not known.
double StandingSeconds(const RankReport& report);

// "all_gather h.1 (train_step, instruction 13, layer h.1)"
std::string InstructionText(const ReportedInstruction& instruction);

// The same of a collective, with its axis, its ranks, which call it is, and what it moves.
std::string GatheringText(const Gathering& gathering);

// "5.02 s", "5.02 to 7.10 s"; empty when none is known.
std::string SecondsText(const std::vector<double>& seconds);

}  // namespace ft
