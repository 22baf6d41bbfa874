#include "tools/ftexec/run_manifest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/data/data_identity.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/report.h"

namespace ft {
namespace {

constexpr uint64_t kMostCount = uint64_t{1} << 62;
constexpr int kMostScalerNumbers = 3;  // TrainingPorts::scaler

std::string DeviceName(DeviceKind device) { return device == DeviceKind::kCuda ? "cuda" : "cpu"; }

std::string ValueText(const proto::Attribute& attribute) {
  if (attribute.has_s()) return attribute.s();
  if (attribute.has_f()) return fmt::format("{}", attribute.f());
  return fmt::format("{}", attribute.i());
}

// Settings of a plan that a run takes from elsewhere, or that say nothing of what is computed.
bool IsOfRun(std::string_view name) {
  if (name == "global_batch") return false;
#define FT_RUN FT_PLANNED
#define FT_PLANNED(TYPE, NAME, ...) \
  if (name == #NAME) return true;
#include "runtime/base/settings.def"
  return false;
}

// Collects "name now (was before)".
class Differences {
 public:
  template <typename T>
  void Compare(std::string_view name, const T& before, const T& now) {
    if (before != now) words_.push_back(fmt::format("{} {} (was {})", name, now, before));
  }
  void Add(std::string words) { words_.push_back(std::move(words)); }
  void CompareSettings(const proto::Manifest& before, const proto::Plan& plan) {
    std::map<std::string, std::string> old;
    for (const proto::Attribute& setting : before.settings()) old[setting.name()] = ValueText(setting);
    for (const proto::Attribute& setting : plan.settings()) {
      const auto found = old.extract(setting.name());
      if (IsOfRun(setting.name())) continue;
      Compare(setting.name(), found.empty() ? "not there" : OneLine(found.mapped(), kMaxNameBytes),
              ValueText(setting));
    }
    for (const auto& [name, value] : old) {
      if (!IsOfRun(name))
        Compare(OneLine(name, kMaxNameBytes), OneLine(value, kMaxNameBytes), std::string("not there"));
    }
  }
  std::vector<std::string> Take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

// The schedule and seed of the manifest, as a plan would suggest them.
TrainingSettings SettingsOf(const proto::Manifest::Run& run, TrainingSettings of_plan) {
  of_plan.lr = run.lr();
  of_plan.min_lr = run.min_lr();
  of_plan.warmup_steps = static_cast<int64_t>(run.warmup_steps());
  of_plan.warmup_ratio.reset();
  of_plan.warmup_min_lr = run.warmup_min_lr();
  of_plan.steps = static_cast<int64_t>(run.total_steps());
  of_plan.seed = static_cast<int64_t>(run.seed());
  if (run.max_bad_steps() > 0) of_plan.max_bad_steps = static_cast<int64_t>(run.max_bad_steps());
  of_plan.lr_schedule = run.lr_schedule();
  of_plan.warmup_type = run.warmup();
  of_plan.lr_convention = run.lr_convention();
  return of_plan;
}

// Text of JSON both ways: the identity has a form of its own.
void SetData(const DataIdentity& identity, proto::Manifest& manifest) {
  const auto status =
      google::protobuf::util::JsonStringToMessage(DataIdentityText(identity), manifest.mutable_data());
  if (!status.ok()) manifest.clear_data();  // which a run that goes on refuses
}

absl::StatusOr<DataIdentity> DataOf(const proto::Manifest& manifest) {
  std::string text;
  if (const auto status = google::protobuf::util::MessageToJsonString(manifest.data(), &text); !status.ok())
    return absl::InvalidArgumentError("the manifest says nothing sensible of the data");
  return ParseDataIdentity(text);
}

// Other data than before is an error, or read from its beginning.
absl::Status SettleData(const Flags& flags, const proto::Manifest& manifest, const Job& job,
                        TrainingPosition& position, Differences& differences) {
  FT_ASSIGN_OR_RETURN(const DataIdentity before, DataOf(manifest));
  const std::string change = DataChange(before, IdentityOf(*job.data));
  if (change.empty()) return absl::OkStatus();
  if (flags.data_changed != DataChanged::kRestart)
    return absl::InvalidArgumentError(
        fmt::format("--data is not what the run had until here: {}; --data-changed=restart reads it from its "
                    "beginning",
                    change));
  position.sequences = 0;
  differences.Add(fmt::format("data, read from its beginning ({})", change));
  return absl::OkStatus();
}

absl::Status CheckCounts(const proto::Manifest& manifest) {
  const auto& position = manifest.position();
  for (const uint64_t count :
       {position.steps(), position.applied(), position.micro_steps(), position.sequences(),
        manifest.run().total_steps(), manifest.run().schedule_steps(), manifest.run().warmup_steps(),
        manifest.run().max_bad_steps()}) {
    if (count > kMostCount)
      return absl::InvalidArgumentError("the manifest counts more steps than a run can have");
  }
  if (position.applied() > position.steps())
    return absl::InvalidArgumentError("by the manifest more steps were applied than done");
  const auto& scaler = manifest.health().scaler();
  const bool possible = std::all_of(scaler.begin(), scaler.end(),
                                    [](float number) { return std::isfinite(number) && number >= 0; });
  if (scaler.size() > kMostScalerNumbers || !possible)
    return absl::InvalidArgumentError("the manifest's state of loss scaling is not possible");
  return absl::OkStatus();
}

}  // namespace

proto::Manifest DescribeRun(const Flags& flags, const Job& job, const RankDevice& device) {
  const proto::Plan& plan = job.plan();
  proto::Manifest manifest;
  manifest.set_producer("ftexec " FT_VERSION);
  proto::Manifest::Run& run = *manifest.mutable_run();
  run.set_seed(static_cast<uint64_t>(job.seed));
  run.set_total_steps(static_cast<uint64_t>(job.steps));
  run.set_schedule_steps(static_cast<uint64_t>(job.lr.total_steps));
  run.set_steps_follow_data(job.steps_follow_data);
  run.set_lr(job.lr.peak);
  run.set_lr_schedule(std::string(Name(job.lr.kind)));
  run.set_min_lr(job.lr.min_lr);
  run.set_warmup_steps(static_cast<uint64_t>(job.lr.warmup_steps));
  run.set_warmup(std::string(Name(job.lr.warmup)));
  run.set_warmup_min_lr(job.lr.warmup_min_lr);
  run.set_lr_convention(std::string(Name(job.lr.convention)));
  run.set_shuffle(job.shuffle);
  run.set_max_bad_steps(static_cast<uint64_t>(job.max_bad_steps));
  run.set_batch(plan.batch());
  run.set_seq_len(plan.seq_len());
  run.set_micro_steps(std::max(1u, plan.micro_steps()));
  proto::Manifest::Platform& platform = *manifest.mutable_platform();
  platform.set_device(DeviceName(flags.device));
  platform.set_instruction_set(std::string(device.instruction_set()));
  platform.set_threads(device.is_cpu() ? static_cast<uint32_t>(job.threads) : 0);
  proto::Manifest::Model& model = *manifest.mutable_model();
  model.set_name(plan.model());
  model.set_fingerprint(ModelFingerprint(plan));
  *model.mutable_facts() = plan.facts();
  if (plan.has_lora()) *model.mutable_lora() = plan.lora();
  model.set_parameters(CountParameters(plan));
  manifest.set_strategy(plan.strategy());
  manifest.set_plan_hash(PlanHashText(job.file.hash));
  *manifest.mutable_settings() = plan.settings();
  SetData(IdentityOf(*job.data), manifest);
  return manifest;
}

void SetProgress(const TrainingPosition& position, const TrainingStability& stability,
                 proto::Manifest& manifest) {
  proto::Manifest::Position& to = *manifest.mutable_position();
  to.set_steps(static_cast<uint64_t>(position.steps));
  to.set_applied(static_cast<uint64_t>(position.applied));
  to.set_micro_steps(static_cast<uint64_t>(position.micro_steps));
  to.set_sequences(static_cast<uint64_t>(position.sequences));
  proto::Manifest::Health& of = *manifest.mutable_health();
  of.set_bad_in_a_row(static_cast<uint64_t>(stability.bad_in_a_row));
  of.set_overflows_in_a_row(static_cast<uint64_t>(stability.overflows_in_a_row));
  of.mutable_scaler()->Assign(stability.scaler.begin(), stability.scaler.end());
}

TrainingPosition PositionOf(const proto::Manifest& manifest) {
  const proto::Manifest::Position& from = manifest.position();
  return {.steps = static_cast<int64_t>(from.steps()),
          .applied = static_cast<int64_t>(from.applied()),
          .micro_steps = static_cast<int64_t>(from.micro_steps()),
          .sequences = static_cast<int64_t>(from.sequences())};
}

TrainingStability StabilityOf(const proto::Manifest& manifest) {
  const proto::Manifest::Health& from = manifest.health();
  return {.bad_in_a_row = static_cast<int64_t>(from.bad_in_a_row()),
          .overflows_in_a_row = static_cast<int64_t>(from.overflows_in_a_row()),
          .scaler = {from.scaler().begin(), from.scaler().end()}};
}

bool IsSameSetup(const proto::Manifest& manifest, const Flags& flags, const Job& job,
                 const RankDevice& device) {
  const proto::Manifest::State& state = manifest.state();
  return manifest.plan_hash() == PlanHashText(job.file.hash) &&
         Mesh{static_cast<int>(state.replica()), static_cast<int>(state.shard())} == job.bound.mesh &&
         manifest.platform().device() == DeviceName(flags.device) &&
         manifest.platform().instruction_set() == device.instruction_set();
}

absl::StatusOr<std::vector<std::string>> SettleResumed(const Flags& flags, const proto::Manifest& manifest,
                                                       const RankDevice& device, Job& job,
                                                       TrainingPosition& position) {
  FT_RETURN_IF_ERROR(CheckCounts(manifest));
  const proto::Manifest::Run& before = manifest.run();
  FT_ASSIGN_OR_RETURN(const TrainingSettings of_plan, TrainingSettingsOf(job.plan()));
  const TrainingSettings run = TrainingSettings::Merge(flags.run, SettingsOf(before, of_plan));
  Differences differences;
  FT_RETURN_IF_ERROR(SettleData(flags, manifest, job, position, differences));
  job.steps = *run.steps;
  job.steps_follow_data = before.steps_follow_data() && !flags.run.steps.has_value();
  if (job.steps_follow_data) {
    // One pass over the data ends after the same sequence, whatever a step takes now.
    const int64_t per_step = job.SequencesPerStep();
    const int64_t left = std::max<int64_t>(0, job.data->num_sequences() - position.sequences);
    job.steps = position.steps + (left + per_step - 1) / per_step;
  }
  job.seed = *run.seed;
  job.shuffle = flags.shuffle.value_or(before.shuffle());
  job.max_bad_steps = run.max_bad_steps.value_or(job.max_bad_steps);
  const int64_t schedule =
      flags.run.steps.has_value() ? job.steps : static_cast<int64_t>(before.schedule_steps());
  FT_ASSIGN_OR_RETURN(job.lr, run.Schedule(schedule));

  differences.Compare<uint64_t>("steps", before.total_steps(), static_cast<uint64_t>(job.steps));
  differences.Compare<uint64_t>("seed", before.seed(), static_cast<uint64_t>(job.seed));
  differences.Compare("lr", before.lr(), job.lr.peak);
  differences.Compare<std::string>("lr_schedule", before.lr_schedule(), std::string(Name(job.lr.kind)));
  differences.Compare("min_lr", before.min_lr(), job.lr.min_lr);
  differences.Compare<uint64_t>("warmup_steps", before.warmup_steps(),
                                static_cast<uint64_t>(job.lr.warmup_steps));
  if (before.max_bad_steps() > 0)
    differences.Compare<uint64_t>("max_bad_steps", before.max_bad_steps(),
                                  static_cast<uint64_t>(job.max_bad_steps));
  differences.Compare<std::string>("shuffle", before.shuffle() ? "on" : "off", job.shuffle ? "on" : "off");
  differences.Compare("batch", before.batch(), job.plan().batch());
  differences.Compare("seq_len", before.seq_len(), job.plan().seq_len());
  differences.Compare<uint64_t>("micro_steps", before.micro_steps(), std::max(1u, job.plan().micro_steps()));
  const proto::Manifest::State& state = manifest.state();
  differences.Compare<uint64_t>("ranks", uint64_t{state.replica()} * state.shard(),
                                static_cast<uint64_t>(job.world_size()));
  differences.Compare("strategy", manifest.strategy(), job.plan().strategy());
  differences.Compare("device", manifest.platform().device(), DeviceName(flags.device));
  differences.Compare("instruction_set", manifest.platform().instruction_set(),
                      std::string(device.instruction_set()));
  differences.CompareSettings(manifest, job.plan());
  return differences.Take();
}

}  // namespace ft
