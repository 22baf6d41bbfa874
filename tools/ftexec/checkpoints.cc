#include "tools/ftexec/checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/model_config.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/checkpoint/state/tensor_index.h"
#include "runtime/plan/attributes.h"
#include "tools/ftexec/run_manifest.h"
#include "tools/ftexec/shared_folder.h"
#include "tools/ftexec/together.h"

namespace ft {
namespace {

std::string OptimizerOf(const proto::Plan& plan) {
  const proto::Attribute* optimizer = FindAttribute(plan.settings(), "optimizer");
  return optimizer == nullptr ? "" : optimizer->s();
}

// The error in other words, and what it carries.
absl::Status WithMessage(const absl::Status& error, const std::string& message) {
  absl::Status result(error.code(), message);
  error.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

// Each host has the number of its first rank.
Hosts HostsOf(const std::vector<PeerInfo>& peers) {
  Hosts hosts = {.page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
  std::map<std::string_view, int> first_rank;
  for (const PeerInfo& peer : peers)
    hosts.of_rank.push_back(first_rank.emplace(peer.host_id, peer.rank).first->second);
  if (first_rank.size() == 1) hosts.of_rank.clear();
  return hosts;
}

std::string Mebibytes(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

CheckpointType ChooseCheckpointType(const Flags& flags, bool one_host) {
  return flags.state_dict_type.value_or(one_host ? CheckpointType::kFull : CheckpointType::kSharded);
}

ResumeRequest ResumeRequestOf(const Flags& flags, const proto::Plan& plan) {
  ResumeRequest request;
  (flags.resumes_automatically() ? request.folder : request.checkpoint) =
      flags.resumes_automatically() ? flags.checkpoint_dir : flags.resume;
  request.optimizer = OptimizerOf(plan);
  request.fingerprint = ModelFingerprint(plan);
  return request;
}

Checkpoints::Checkpoints(const Flags& flags, Job& job, const RankDevice& device, const Executor& executor,
                         PeerMonitor& monitor, Voice voice)
    : flags_(flags),
      job_(job),
      device_(device),
      executor_(executor),
      monitor_(monitor),
      voice_(std::move(voice)) {
  agree_ = [this](std::string_view topic, uint64_t number, std::string payload, auto decide) {
    return monitor_.Agree(topic, number, std::move(payload), decide,
                          std::max(kCheckpointPatience, flags_.timeout));
  };
}

absl::StatusOr<std::unique_ptr<Checkpoints>> Checkpoints::Open(const Flags& flags, Job& job,
                                                               const RankDevice& device,
                                                               const Executor& executor, PeerMonitor& monitor,
                                                               const std::vector<PeerInfo>& peers,
                                                               Voice voice) {
  auto checkpoints =
      absl::WrapUnique(new Checkpoints(flags, job, device, executor, monitor, std::move(voice)));
  FT_ASSIGN_OR_RETURN(checkpoints->state_, StateOfPlan(job.plan(), job.bound.mesh));
  checkpoints->hosts_ = HostsOf(peers);
  checkpoints->type_ = ChooseCheckpointType(flags, checkpoints->hosts_.of_rank.empty());
  if (flags.saves()) FT_RETURN_IF_ERROR(checkpoints->CheckFolder());
  return checkpoints;
}

absl::Status Checkpoints::CheckFolder() {
  const std::string& folder = flags_.checkpoint_dir;
  const auto make = [&]() -> absl::Status {
    FT_RETURN_IF_ERROR(MakeFolders(folder));
    FT_ASSIGN_OR_RETURN(HeldFolder held, HeldFolder::Take(folder));
    held_.emplace(std::move(held));
    return RemoveLeftovers(folder);
  };
  return CheckSharedFolder(
      {.option = "--checkpoint-dir", .folder = folder, .mark = ".seen-by-all-ranks", .make = make},
      job_.rank(), agree_);
}

absl::StatusOr<bool> Checkpoints::Begin() {
  absl::StatusOr<bool> resumed = Resume();
  absl::Status status = resumed.status();
  if (status.ok() && !*resumed) status = job_.lr_status;
  if (status.ok()) status = Prepare();
  FT_RETURN_IF_ERROR(EndTogether(status));
  return resumed;
}

absl::Status Checkpoints::EndTogether(const absl::Status& own) {
  return ft::EndTogether(agree_, ends_++, own);
}

absl::StatusOr<bool> Checkpoints::Resume() {
  if (flags_.resume.empty()) return false;
  const ResumeRequest request = ResumeRequestOf(flags_, job_.plan());
  const absl::Time begin = absl::Now();
  FT_ASSIGN_OR_RETURN(const Resumed resumed, ft::Resume(request, job_.plan(), state_, executor_, agree_));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  for (const std::string& note : resumed.notes) voice_.warn(note);
  if (resumed.reader == nullptr) return false;
  const proto::Manifest& manifest = resumed.reader->manifest();
  position_ = PositionOf(manifest);
  stability_ = StabilityOf(manifest);
  same_setup_ = IsSameSetup(manifest, flags_, job_, device_);
  // A run that has no step left writes the checkpoint anew, with all that is known of its step.
  if (manifest.has_eval_loss()) eval_loss_ = manifest.eval_loss();
  if (flags_.saves()) from_ = BranchPointIn(flags_.checkpoint_dir, *resumed.reader);
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> differences,
                      SettleResumed(flags_, manifest, device_, job_, position_));
  voice_.say(fmt::format("resumed from '{}' after {} step{}, {} of this rank in {:.2f} s{}{}",
                         resumed.reader->folder(), position_.steps, position_.steps == 1 ? "" : "s",
                         Mebibytes(resumed.reader->bytes_read()), seconds,
                         differences.empty() ? "" : "; not as it was: ", absl::StrJoin(differences, ", ")));
  return true;
}

absl::Status Checkpoints::Prepare() {
  if (!flags_.saves()) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(FileLayout layout, FileLayout::Create(state_, type_));
  SaveSettings settings = {.folder = flags_.checkpoint_dir,
                           .async = flags_.async_save,
                           .retention = flags_.retention(),
                           .extra_files = TensorIndices(layout),
                           .hosts = hosts_,
                           .activity = flags_.async_save ? saving_ : activity_};
  AddConfig(settings);
  description_ = DescribeRun(flags_, job_, device_);
  FT_RETURN_IF_ERROR(LeaveBehind(settings));
  source_ = std::make_unique<ArenaSource>(job_.plan(), state_, executor_);
  FT_ASSIGN_OR_RETURN(saver_, CheckpointSaver::Create(std::move(layout), job_.rank(), settings,
                                                      device_.device(), *source_, agree_));
  last_save_ = absl::Now();
  return absl::OkStatus();
}

// Rank 0 writes manifests, and moves checkpoints.
absl::Status Checkpoints::LeaveBehind(SaveSettings& settings) {
  if (job_.rank() != 0) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(departure_, DepartureIn(settings.folder, from_));
  if (departure_.branch.number() > 0) *description_.mutable_branch() = departure_.branch;
  settings.left_behind = departure_.left;
  if (!departure_.left.empty()) voice_.say(DepartureText(settings.folder, departure_));
  return absl::OkStatus();
}

// With it a folder of whole tensors is one that from_pretrained and --init take.
void Checkpoints::AddConfig(SaveSettings& settings) const {
  if (type_ != CheckpointType::kFull) return;
  absl::StatusOr<std::string> config = ConfigOfModel("the plan", job_.plan().facts(), state_);
  if (!config.ok())
    return voice_.warn(
        fmt::format("checkpoints have no config.json: {}", std::string(config.status().message())));
  settings.extra_files.emplace_back("config.json", *std::move(config));
}

bool Checkpoints::IsDue(int64_t steps_done, Order order) {
  if (order != Order::kNone) return true;
  return flags_.save_every.steps > 0 && steps_done % flags_.save_every.steps == 0;
}

absl::StatusOr<bool> Checkpoints::AtBoundary(TrainingLoop& loop, std::optional<double> eval_loss) {
  if (saver_ == nullptr) return false;
  const int64_t steps_done = loop.position().steps;
  eval_loss_ = eval_loss;
  Enter(activity_, Activity::kAgreeing, steps_done);
  const absl::Duration every = flags_.save_every.time;
  if (job_.rank() == 0 && every > absl::ZeroDuration() && absl::Now() - last_save_ >= every) {
    monitor_.wishes().Request(Order::kSave);
    last_save_ = absl::Now();
  }
  FT_ASSIGN_OR_RETURN(const Order order, monitor_.wishes().AtBoundary(steps_done));
  FT_RETURN_IF_ERROR(Report(/*last=*/false));
  if (IsDue(steps_done, order)) FT_RETURN_IF_ERROR(Save(loop));
  return order == Order::kSaveAndEnd;
}

absl::Status Checkpoints::Save(TrainingLoop& loop) {
  FT_RETURN_IF_ERROR(loop.Report());  // whoever goes on from here appends to it
  proto::Manifest manifest = description_;
  SetProgress(loop.position(), loop.stability(), manifest);
  if (eval_loss_.has_value()) manifest.set_eval_loss(*eval_loss_);
  saved_step_ = loop.position().steps;
  last_save_ = absl::Now();
  Enter(activity_, Activity::kSaving, saved_step_);
  FT_RETURN_IF_ERROR(saver_->Save(std::move(manifest)));
  if (saver_->was_delayed())
    voice_.say(fmt::format("the checkpoint of step {} had to wait for the one before", saved_step_));
  return absl::OkStatus();
}

// A save that failed costs the run nothing but a warning, unless it was the last.
absl::Status Checkpoints::Report(bool last) {
  for (const CheckpointSaver::Outcome& outcome : saver_->TakeOutcomes()) {
    const std::string name = CheckpointName(outcome.step);
    if (!outcome.status.ok()) {
      const std::string line =
          fmt::format("the checkpoint {} was not written: {}", name, std::string(outcome.status.message()));
      if (last && static_cast<int64_t>(outcome.step) == saved_step_) return WithMessage(outcome.status, line);
      voice_.warn(line);
      continue;
    }
    cost_ = outcome.cost;
    if (!outcome.aside.empty()) voice_.say(AsideText(departure_, outcome.aside));
    if (!outcome.note.empty())
      voice_.warn(fmt::format("the checkpoint {} is written, but {}", name, outcome.note));
    voice_.say(
        fmt::format("checkpoint {}/{}: {} of this rank in {:.2f} s, training stood still for {:.1f} ms",
                    flags_.checkpoint_dir, name, Mebibytes(outcome.cost.bytes), outcome.cost.seconds,
                    outcome.cost.stall_ms));
  }
  return absl::OkStatus();
}

absl::Status Checkpoints::Finish(TrainingLoop& loop) {
  if (saver_ == nullptr) return absl::OkStatus();
  if (saved_step_ != loop.position().steps) FT_RETURN_IF_ERROR(Save(loop));
  Enter(activity_, Activity::kAwaitingSave, saved_step_);
  saver_->Wait();
  return Report(/*last=*/true);
}

}  // namespace ft
