// The command line of ftexec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "runtime/collective/create.h"
#include "runtime/data/token_dataset.h"
#include "runtime/metrics/progress.h"

namespace ft {

enum class DeviceKind { kCpu, kNull };

struct Flags {
  std::string plan;
  std::string data;
  DataFormat data_format = DataFormat::kAuto;
  std::optional<int64_t> steps;  // absent: one pass over the data
  DeviceKind device = DeviceKind::kCpu;
  int threads = 0;  // 0: OMP_NUM_THREADS, or the cores shared among the ranks of this host
  int64_t seed = 42;
  double lr = 3e-4;
  bool shuffle = true;
  std::string init;
  std::string save_weights;
  std::string metrics;
  std::string log_dir;
  std::string trace;
  int64_t trace_steps = 3;
  ProgressMode progress = ProgressMode::kAuto;
  CollectiveBackend backend = CollectiveBackend::kAuto;
  double timeout_seconds = 300;
  int world_size = 1;  // null device

  absl::Duration timeout() const { return absl::Seconds(timeout_seconds); }
};

// Fills `flags`. Returns -1 to go on; otherwise the status to exit with, everything having been printed: 0
// after --help or
// --version, 2 for a mistake.
int ParseFlags(int argc, char** argv, Flags& flags);

}  // namespace ft
