// What a plan suggests for a run, and what it says about loss scaling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/run_settings.h"
#include "runtime/executor/lr_schedule.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Settings of a plan (Plan.settings) by name: those of a run in runtime/base/settings.def. Absent ones are
// empty.
struct TrainingSettings {
#define FT_RUN(TYPE, NAME, ...) std::optional<TYPE> NAME = {};
#define FT_PLANNED(TYPE, NAME, ...) std::optional<TYPE> NAME = {};
#include "runtime/base/settings.def"

  // What `flags` say, and where they are silent what `plan` says. Of the two ways to give a warm-up, one in
  // `flags` leaves none of the plan's.
  static TrainingSettings Merge(const TrainingSettings& flags, const TrainingSettings& plan);

  // The schedule of a run of `total_steps`: the defaults where nothing is said, warmup_steps before
  // warmup_ratio. Errors: those of LrSchedule::Check; InvalidArgument for a ratio outside 0 ... 1 and for
  // words that are none of a schedule.
  absl::StatusOr<LrSchedule> Schedule(int64_t total_steps) const;
};

// InvalidArgument when a step of `world_size` ranks takes another number of sequences than the plan was
// compiled for (setting global_batch).
absl::Status CheckGlobalBatch(const proto::Plan& plan, int world_size);

// Errors: InvalidArgument for a setting of another type, a number out of range or a word that is none of the
// setting's.
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
