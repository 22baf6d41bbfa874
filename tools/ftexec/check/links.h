// The links between ranks: measured by the collectives that the plan uses, and compared with what its costs
// were reckoned with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/device/device.h"
#include "runtime/executor/checkpoint_saver.h"
#include "runtime/executor/link_probe.h"
#include "runtime/plan/link_use.h"
#include "runtime/plan/node_layout.h"
#include "runtime/plan/target.h"
#include "tools/ftexec/check/rank_facts.h"

namespace ft {

// What is measured of a use.
struct LinkTry {
  size_t use = 0;  // of the uses
  LinkCall call;
  uint64_t whole_bytes = 0;  // that the call moves
};

// For each use: an element, which takes the link's latency, and the typical and the largest call of the plan,
// but of at most `most_bytes`. The same on all ranks.
std::vector<LinkTry> LinkTries(const std::vector<LinkUse>& uses, uint64_t most_bytes);

// Checks the results of all uses and measures all tries, on all ranks; `agree` is for how often. Adds to
// `results`: seconds, and a failure where a result is wrong. Errors: of a collective, after which the ranks
// have nothing more to say to each other.
absl::Status MeasureLinks(Device& device, const CommunicatorTable& communicators,
                          const std::vector<LinkUse>& uses, const std::vector<LinkTry>& tries,
                          const AgreeFunction& agree, RankResults& results);

// On rank 0, what it makes of the tries of one use: seconds by rank, one for each of `tries`. `target` is
// null where there is nothing to compare with.
struct LinkMeasurement {
  const LinkUse& use;
  absl::Span<const LinkTry> tries;
  const std::vector<std::vector<double>>& seconds;  // by try, by rank
  std::vector<int> groups;                          // a number for the group of each rank
  NodeLayout layout;
  const Target* target = nullptr;
};
Finding JudgeLink(const LinkMeasurement& measurement);

// What `target` is reckoned to need: "20.0 us at 16 bytes; 2.50 GB/s at 1.0 MiB".
std::string ReckonedText(const Target& target, absl::Span<const LinkTry> tries, const NodeLayout& layout);

}  // namespace ft
