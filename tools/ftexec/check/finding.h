// What a check of a job says: one line for each thing that it looked at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace ft {

enum class Verdict { kOk, kWarning, kFailure };  // of two, the greater one holds

struct Finding {
  std::string check;  // what was looked at: "plan", "memory"
  Verdict verdict = Verdict::kOk;
  std::string found;
  std::string needed = {};                        // empty: nothing to compare with
  std::string advice = {};                        // what to do; may stand in `found` already
  absl::StatusCode code = absl::StatusCode::kOk;  // of a failure: what a run would end with
};

Finding Ok(std::string check, std::string found, std::string needed = "");
Finding Warning(std::string check, std::string found, std::string needed, std::string advice);
// Messages say what to do themselves.
Finding Failure(std::string check, const absl::Status& status);
Finding Failure(std::string check, absl::StatusCode code, std::string found, std::string needed,
                std::string advice);

// The findings of all ranks as one for each check, in the order of the first rank that has it. Where ranks
// differ, what is not well is told, with the ranks: "ranks 1-3, 7: ...".
std::vector<Finding> Merge(const std::vector<std::vector<Finding>>& by_rank);

// A line for each finding, aligned, and one that counts them. Ends with the end of a line.
std::string TableOf(const std::vector<Finding>& findings);

// "2 of 14 checks failed: memory, disk"; empty: none did.
std::string FailuresOf(const std::vector<Finding>& findings);

// OK, or the code of the first failure, with the above.
absl::Status StatusOf(const std::vector<Finding>& findings);

// "512 bytes", "12.3 MiB"
std::string BytesText(uint64_t bytes);

}  // namespace ft
