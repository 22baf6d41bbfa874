// What this process is to do, made and checked before it meets the other ranks: bad input ends a run at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "runtime/data/dataset.h"
#include "runtime/executor/initial_weights.h"
#include "runtime/executor/lr_schedule.h"
#include "runtime/executor/save_folder.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan_file.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/prompt.h"

namespace ft {

struct Job {
  PlanFile file;
  BoundPlan bound;
  LaunchEnvironment environment;
  std::unique_ptr<Dataset> data;       // that is trained on; null where nothing is
  std::unique_ptr<Dataset> eval_data;  // null: no evaluation; with --evaluate that of --data
  std::optional<Prompts> prompts;      // none: no text is continued
  // Where weights come from; none: random ones. Given up when they have been read.
  std::vector<InitialWeights> init;
  bool init_draws = false;  // parameters that none of them has
  // Of the flags, else of the plan, else the defaults.
  int64_t steps = 0;
  bool steps_follow_data = false;  // nobody said how many: one pass over the data
  LrSchedule lr;
  // Of a schedule that is not possible, unless the checkpoint that the run goes on from has the rest of it.
  absl::Status lr_status;
  int64_t seed = RunSettings().seed;
  bool shuffle = true;
  int64_t max_bad_steps = RunSettings().max_bad_steps;
  int threads = 1;
  bool may_spin = false;  // there are cores for threads that wait

  const proto::Plan& plan() const { return file.plan; }
  int rank() const { return environment.rank; }
  int world_size() const { return environment.world_size; }
  int64_t SequencesPerStep() const;  // over all ranks
};

// The plan, read, verified and bound to flags.mesh, or to its default mesh for `world_size` ranks,
// `local_world_size` of them on this node (0: unknown). For the null device: bound for the device and the
// nodes of the plan's target; without a `world_size` to the mesh that it was compiled for. Errors there:
// InvalidArgument for a plan without a target, and for one that lacks a program that the flags ask for.
absl::Status LoadPlan(const Flags& flags, int world_size, int local_world_size, Job& job);

// One of the things that are done before ranks meet.
struct Preparation {
  std::string_view name;
  std::string_view needs;  // another one, without which it cannot be done; mostly none
  absl::Status (*run)(const Flags& flags, Job& job);
};

// All of them, in their order, for a job that knows its environment. Errors: one line about the file or
// variable at fault.
absl::Span<const Preparation> Preparations();

// What --save-hf and its companions ask for.
FolderRequest FolderRequestOf(const Flags& flags);

// All of it for a run. Errors: one line about the file or variable at fault.
absl::StatusOr<Job> PrepareJob(const Flags& flags, const LaunchEnvironment& environment);

// Equal on all ranks that do the same thing, "name=value name=value ...", and how to tell a person what that
// is.
std::string Fingerprint(const Flags& flags, const Job& job);
std::string FingerprintLabel(const Flags& flags, const Job& job);

}  // namespace ft
