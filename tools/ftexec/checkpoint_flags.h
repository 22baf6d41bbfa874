// The options of ftexec about checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/folder.h"

namespace CLI {
class App;
}

namespace ft {

struct CheckpointFlags {
  std::string folder;                           // --checkpoint-dir; empty: none are written
  int64_t every_steps = 0;                      // --save-every; 0: not by steps
  absl::Duration every = absl::ZeroDuration();  // or by the clock
  Retention keep;
  std::optional<CheckpointType> type;  // absent: full on one host, sharded on several
  bool async = true;
  std::string resume;  // "auto", or a folder
  bool restart_data = false;

  bool saves() const { return !folder.empty(); }
  bool resumes_automatically() const { return resume == "auto"; }
};

void AddCheckpoints(CLI::App& app, CheckpointFlags& flags);

// What cannot be together, in words; empty: nothing.
std::string CheckTogether(const CLI::App& app, const CheckpointFlags& flags);

}  // namespace ft
