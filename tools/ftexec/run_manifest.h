// A run, as the manifest of its checkpoints tells it, and what one that goes on takes from there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/manifest.pb.h"
#include "runtime/executor/training_loop.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// All but position, health, layout and files.
proto::Manifest DescribeRun(const Flags& flags, const Job& job, const RankDevice& device);

void SetProgress(const TrainingPosition& position, const TrainingStability& stability,
                 proto::Manifest& manifest);
TrainingPosition PositionOf(const proto::Manifest& manifest);
TrainingStability StabilityOf(const proto::Manifest& manifest);

// Whether the checkpoint was written by ranks as those of this job, with the same plan on the same machine:
// what it takes, and what its bits depend on, is as it was.
bool IsSameSetup(const proto::Manifest& manifest, const Flags& flags, const Job& job,
                 const RankDevice& device);

// Settles the job's seed, steps, schedule of the rate, shuffling and bad steps for a run that goes on from
// the manifest: what flags say, else the manifest. `now` is DescribeRun of the job before. Returns what is
// not as it was, in words. Errors: InvalidArgument for numbers that make no run, and for other data, unless
// flags let it be read from the beginning.
absl::StatusOr<std::vector<std::string>> SettleResumed(const Flags& flags, const proto::Manifest& manifest,
                                                       const RankDevice& device, Job& job,
                                                       TrainingPosition& position);

}  // namespace ft
