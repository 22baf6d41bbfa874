// What a plan suggests for a run, and what it says about loss scaling.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/executor/lr_schedule.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Number of bad steps in a row that ends a run. A single bad batch is survived; weights that have gone bad
// give nothing but bad steps, and there is no use in more of them.
inline constexpr int64_t kDefaultMaxBadSteps = 3;

// Settings of a plan (Plan.settings) by name; absent ones are empty.
//   lr, min_lr, warmup_min_lr, warmup_ratio                 floats
//   warmup_steps, steps, seed, max_bad_steps, global_batch  whole numbers
//   lr_schedule      constant, linear or cosine
//   warmup_type      linear or log
//   lr_convention    transformers or deepspeed
struct TrainingSettings {
  std::optional<double> lr = {};
  std::optional<LrSchedule::Kind> lr_schedule = {};
  std::optional<double> min_lr = {};
  std::optional<int64_t> warmup_steps = {};
  std::optional<double> warmup_ratio = {};
  std::optional<int64_t> steps = {};
  std::optional<int64_t> seed = {};
  std::optional<int64_t> max_bad_steps = {};
  // Of the plan alone; no flag of a run changes them.
  std::optional<LrSchedule::Warmup> warmup = {};
  std::optional<double> warmup_min_lr = {};
  std::optional<LrSchedule::Convention> lr_convention = {};
  std::optional<int64_t> global_batch = {};  // sequences of a step over all ranks; 0: any number

  // What `flags` say, and where they are silent what `plan` says. Of the two ways to give a warm-up, one in
  // `flags` leaves none of the plan's.
  static TrainingSettings Merge(const TrainingSettings& flags, const TrainingSettings& plan);

  // The schedule of a run of `total_steps`: constant at 3e-4 where nothing is said, warmup_steps before
  // warmup_ratio. Errors: those of LrSchedule::Check; InvalidArgument for a ratio outside 0 ... 1.
  absl::StatusOr<LrSchedule> Schedule(int64_t total_steps) const;
};

// InvalidArgument when a step of `world_size` ranks takes another number of sequences than the plan was
// compiled for (setting global_batch).
absl::Status CheckGlobalBatch(const proto::Plan& plan, int world_size);

// Errors: InvalidArgument for a setting of another type, a number out of range or a word that is none of the
// above.
absl::StatusOr<TrainingSettings> TrainingSettingsOf(const proto::Plan& plan);

// Where loss scaling begins: settings loss_scale (fixed; 0 or absent: dynamic), initial_scale_power (16) and
// min_loss_scale (0).
struct LossScaling {
  double initial = 65536;
  double least = 0;  // the scale that is never left; the initial one when it is fixed
  bool is_fixed = false;
};

// Errors: as TrainingSettingsOf.
absl::StatusOr<LossScaling> LossScalingOf(const proto::Plan& plan);

}  // namespace ft
