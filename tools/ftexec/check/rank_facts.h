// What a rank tells rank 0 in a check, as text and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/memory_room.h"
#include "tools/ftexec/check/finding.h"

namespace ft {

struct RankFacts {
  std::vector<Finding> findings;
  // Of what it is to run, as Fingerprint and FingerprintLabel say it; empty where it has not got that far.
  std::string fingerprint;
  std::string label;
  // Ranks for which this is the same can try things together; empty where there is no plan.
  std::string together;
  bool has_device = false;    // one that it can compute on, and talk to the others with
  std::string device;         // a GPU's description; empty for CPUs
  int threads = 0;            // that compute; 0: not on the CPU
  std::vector<int> cpus;      // that the process may run on, ascending
  uint64_t memory_bytes = 0;  // of the host, that a run will take on this rank
  std::vector<MemoryPool> pools;
  std::optional<uint64_t> address_space;  // bytes left; nullopt: no limit
  uint64_t shm_bytes = 0;                 // of /dev/shm, that a run will take for this rank
  std::optional<uint64_t> shm_room;
};

std::string Encode(const RankFacts& facts);
// Errors: Internal for text of another kind.
absl::StatusOr<RankFacts> DecodeFacts(const std::string& text);

// What a rank has when the check ends.
struct RankResults {
  std::vector<Finding> findings;
  std::vector<double> link_seconds;  // of each of the tries of LinkTries, in its order; empty: none were made
  double compute_seconds = 0;        // of an eval_step, without waiting; 0: not known
};

std::string Encode(const RankResults& results);
absl::StatusOr<RankResults> DecodeResults(const std::string& text);

}  // namespace ft
