// Neighbouring units that cost the same, so that tables have one row for all of them.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/report.h"

namespace ftc {

struct UnitRun {
  std::string name;  // "transformer.h.0", "transformer.h.1..10 (10 units, each)"
  int first = 0;     // index of its first unit
  int units = 1;
};

// Units follow each other in a run when their names differ in one number that counts up by one and their
// traffic is equal.
std::vector<UnitRun> EqualUnits(const ft::proto::Plan& plan, const ft::TrafficReport& traffic);

}  // namespace ftc
