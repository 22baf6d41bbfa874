// The metrics file: one JSON object a step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/metrics/step_metrics.h"

namespace ft {

// A further number for a line.
struct ExtraMetric {
  std::string_view name;  // letters, digits and underscores; not one of StepMetrics' names
  double value;
};

// Each line is
// {"step":0,"loss":...,"grad_norm":...,"lr":...,"tokens_per_s":...,"step_ms":...,"arena_bytes":...,
// "samples_per_s":...}, with "host_arena_bytes", "loss_scale", "exposed_ms", "mfu", "utilization" and the
// "save_..." of a checkpoint where there is one, "compute_step", "compute_ms_min", "compute_ms_mean",
// "compute_ms_max" and "slowest_rank" where the ranks' figures are known, "skipped":true where the update was
// not applied, then the extra ones; for an evaluation
// {"step":9,"eval_loss":...,"eval_tokens":...}, and "eval_NAME" for each named output of the model; where
// nothing counts "eval_loss":null and "eval_tokens":0 alone. "step" counts from 0. Doubles have 17
// significant digits, so reading them gives the same bits. JSON has no NaN: a number that is not finite is
// null, and a field "<name>_nonfinite" after it says "nan", "inf" or "-inf".
class MetricsFile {
 public:
  enum class OpenMode { kTruncate, kAppend };

  // System errors: exit status 74.
  static absl::StatusOr<std::unique_ptr<MetricsFile>> Open(const std::string& path,
                                                           OpenMode mode = OpenMode::kTruncate);

  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile();

  // Whether it had lines already when it was opened.
  bool has_earlier_lines() const { return has_earlier_lines_; }

  // Writes one line and hands it to the system at once, in one call. Allocates nothing unless it fails.
  // InvalidArgument when the line would exceed kMaxLine bytes; system errors: exit status 74.
  absl::Status Write(const StepMetrics& metrics, absl::Span<const ExtraMetric> extra = {});
  absl::Status WriteEvaluation(const EvaluationMetrics& metrics);

  // Writes a line that was made elsewhere, an object of JSON of any length. System errors: exit status 74.
  absl::Status WriteObject(std::string_view object);

  // The next step's line also has "<name>":{"<part>":bytes,...}: what does not change from step to step.
  void AddOnce(std::string_view name, absl::Span<const std::pair<std::string_view, uint64_t>> parts);

  // The same with "<name>":"<text>", a text that needs no escapes.
  void AddOnce(std::string_view name, std::string_view text);

  // Before a run that goes on appends: takes out the lines of steps from `first` on, which are computed
  // again, and a line that was cut short. A file that is not there has none. Errors: the system's (exit
  // status 74).
  static absl::Status KeepSteps(const std::string& path, int64_t first);

  static constexpr size_t kMaxLine = 4096;

 private:
  MetricsFile(std::string path, int fd, bool has_earlier_lines)
      : path_(std::move(path)), fd_(fd), has_earlier_lines_(has_earlier_lines) {}
  absl::Status WriteLine(size_t bytes);
  absl::Status WriteAll(std::string_view text);

  std::string path_;
  int fd_;
  bool has_earlier_lines_;
  std::string once_;  // fields, each with a comma behind it
  std::array<char, kMaxLine> line_;
};

}  // namespace ft
