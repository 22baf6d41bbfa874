// What --log-dir gets for TensorBoard.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/collective/create.h"
#include "runtime/metrics/training_events.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// Rank 0's event file in flags.log_dir, which exists, with two texts at `first_step` (from 0, the first one
// of this run): "run/settings" and "run/memory". `warn`: of TrainingEvents. Errors: those of EventFile::Open.
absl::StatusOr<std::unique_ptr<TrainingEvents>> OpenTrainingEvents(
    const Flags& flags, const Job& job, const RankDevice& device, CollectiveBackend backend,
    int64_t first_step, std::function<void(const std::string& line)> warn);

// The settings of a run as a table in markdown: what was given, and what became of it.
std::string SettingsText(const Flags& flags, const Job& job, const RankDevice& device,
                         CollectiveBackend backend, int64_t first_step);

}  // namespace ft
