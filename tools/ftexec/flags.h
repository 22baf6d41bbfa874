// The command line of ftexec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/backends/cuda/platform.h"
#include "runtime/collective/create.h"
#include "runtime/collective/emulated_link.h"
#include "runtime/data/data_format.h"
#include "runtime/data/data_list.h"
#include "runtime/executor/training_settings.h"
#include "runtime/metrics/progress.h"
#include "runtime/plan/mesh.h"
#include "tools/ftexec/checkpoint_flags.h"

namespace ft {

inline constexpr int kMaxThreads = 4096;  // of a rank, that compute

enum class DeviceKind { kCpu, kCuda, kNull };

struct CudaFlags {
  bool graph = true;               // steps are recorded and replayed
  cuda::PlatformOptions platform;  // `deterministic` is for collectives, too
};

struct Flags {
  std::vector<std::string> arguments;  // all of them, as they were given
  std::string plan;
  std::vector<DataEntry> data;
  DataFormat data_format = DataFormat::kAuto;
  TrainingSettings
      run;  // absent ones: what the plan says, else the defaults; steps: else one pass over the data
  std::vector<DataEntry> eval_data;  // without weights
  int64_t eval_every = 0;            // 0: only at the end
  int64_t eval_steps = 0;            // 0: all of the data
  bool check = false;                // prove the job, train nothing
  DeviceKind device = DeviceKind::kCpu;
  CudaFlags cuda;
  bool generated_kernels = true;            // else clusters are walked
  std::optional<cpu::Isa> instruction_set;  // absent: the best that every rank has
  int threads = 0;              // 0: OMP_NUM_THREADS, or the cores shared among the ranks of this host
  std::optional<bool> shuffle;  // absent: on, or as the run that is resumed
  std::string init;
  std::vector<std::string> allow_unused;  // globs
  std::string save_weights;
  CheckpointFlags checkpoints;
  std::string metrics;
  std::string log_dir;
  std::string trace;
  int64_t trace_steps = 3;
  ProgressMode progress = ProgressMode::kAuto;
  CollectiveBackend backend = CollectiveBackend::kAuto;
  double timeout_seconds = 300;
  double grace_seconds = 25;
  int world_size = 0;        // null device; 0: what the plan was compiled for
  std::optional<Mesh> mesh;  // absent: the plan's default
  std::optional<EmulatedLink> emulated_link;

  absl::Duration timeout() const { return absl::Seconds(timeout_seconds); }
  absl::Duration grace() const { return absl::Seconds(grace_seconds); }
};

// Fills `flags`. Returns -1 to go on; otherwise the status to exit with, everything having been printed: 0
// after --help or
// --version, 2 for a mistake.
int ParseFlags(int argc, char** argv, Flags& flags);

}  // namespace ft
