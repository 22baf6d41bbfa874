// The command line of ftexec.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/backends/cuda/platform.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/collective/create.h"
#include "runtime/collective/emulated_link.h"
#include "runtime/data/data_format.h"
#include "runtime/data/data_list.h"
#include "runtime/executor/training_settings.h"
#include "runtime/metrics/progress.h"
#include "runtime/plan/mesh.h"
#include "tools/ftexec/gpu_sharing.h"

namespace CLI {
class App;
}

namespace ft {

inline constexpr int kMaxThreads = 4096;  // of a rank, that compute
inline constexpr int64_t kMostKept = int64_t{1} << 48;

enum class DeviceKind { kCpu, kCuda, kNull };
enum class Kernels { kGenerated, kReference };
enum class DataChanged { kRefused, kRestart };  // since the run that is resumed

// Between two checkpoints: steps, or time by the clock; neither: one at the end.
struct SaveInterval {
  int64_t steps = 0;
  absl::Duration time = absl::ZeroDuration();
};

// A field for each row of flags.def, which says what it means. What is not given and has no default is empty
// or 0.
struct Flags {
  std::vector<std::string> arguments;  // all of them, as they were given
  std::string plan;
  TrainingSettings
      run;  // absent ones: what the plan says, else the defaults; steps: else one pass over the data
#define FT_FLAG(TYPE, NAME, DEFAULT, ...) TYPE NAME = DEFAULT;
#include "tools/ftexec/flags.def"

  bool calibrates() const { return !calibrate.empty(); }
  bool trains() const { return !evaluate && generate == 0 && !calibrates(); }
  bool saves() const { return trains() && !checkpoint_dir.empty(); }
  bool resumes_automatically() const { return resume == "auto"; }
  Retention retention() const { return {.newest = keep, .every = keep_every, .best = keep_best}; }
  cuda::PlatformOptions platform() const {
    return {.allow_tf32 = tf32,
            .attention = attention,
            .deterministic = deterministic,
            .share_devices = share_gpus};
  }
};

// Fills `flags`. Returns -1 to go on; otherwise the status to exit with, everything having been printed: 0
// after --help or
// --version, 2 for a mistake.
int ParseFlags(int argc, char** argv, Flags& flags);

// Calls `describe` with the command line, as it is on any machine.
void DescribeFlags(const std::function<void(const CLI::App&)>& describe);

// The table of docs/reference/ftexec.md.
std::string FlagsAsMarkdown();

}  // namespace ft
