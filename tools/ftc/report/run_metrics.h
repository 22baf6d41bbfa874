// The metrics file of a run (ftexec --metrics), held against the plan that it is said to be of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ftc/explain.h"

namespace ftc {

// The most that is read of metrics. A trace has no such limit: it is mapped and read line by line.
inline constexpr uint64_t kMaxRunBytes = uint64_t{256} << 20;

struct RunMetrics {
  static constexpr std::array kColumns = {"loss",    "grad_norm",  "lr",  "tokens_per_s",
                                          "step_ms", "exposed_ms", "mfu", "loss_scale"};

  std::string file;  // its name, without folders
  std::vector<int64_t> steps;
  // Parallel to steps, by kColumns; nothing where a line has none, or a number that is not finite, or larger
  // than 1e300: sums and ranges of such are not.
  std::array<std::vector<std::optional<double>>, kColumns.size()> columns;
  std::vector<int64_t> evaluated;  // after which step
  std::vector<std::optional<double>> eval_losses;
  int64_t lines = 0;  // of steps; of so many only every `every`th is in the columns
  int64_t every = 1;
  // Steps of other ranks or another plan, such as those before a resumption at another number of ranks: they
  // are in the columns, and not in the steady step.
  int64_t others = 0;

  // The steady step: medians after the fifth of this plan, and of each resumption of it from another; nothing
  // where there are no more.
  struct Steady {
    int64_t steps = 0;
    double step_ms = 0;
    double tokens_per_s = 0;
    std::optional<double> exposed_ms;
  };
  std::optional<Steady> steady;
};

// Errors: those of the system (exit status 74); InvalidArgument, with file and line, for a line that is none
// of metrics, times and rates below 0, steps that go back, and metrics none of whose steps is of the plan and
// the ranks of `explained`.
absl::StatusOr<RunMetrics> ReadRunMetrics(const std::string& path, const Explained& explained);

// "metrics.jsonl" of "/there/metrics.jsonl"
std::string FileName(const std::string& path);

}  // namespace ftc
