// What keeping, computing again and offloading values costs, by value: for ftc explain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// What one decision about an activation buys, over all layers that it was made in.
struct SavedReport {
  std::string value;   // without the layer
  std::string choice;  // keep, recompute, offload
  uint64_t count = 0;  // values
  uint64_t bytes = 0;  // of all of them; not all live at the same time
  uint64_t flops = 0;  // of computing them again
  double seconds = 0;  // of computing them again, or of copying them out and back
};

// By choice, then bytes, the most first. Seconds are those of `target`.
std::vector<SavedReport> ReportSaved(const proto::Plan& plan, const Target& target);

}  // namespace ft
