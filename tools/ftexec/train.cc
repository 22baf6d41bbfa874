#include "tools/ftexec/train.h"

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/instruction_times.h"
#include "runtime/executor/load_weights.h"
#include "runtime/executor/save_folder.h"
#include "runtime/executor/save_weights.h"
#include "runtime/executor/trace_session.h"
#include "runtime/executor/training_loop.h"
#include "runtime/metrics/trace.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/report_text.h"
#include "tools/ftexec/checkpoints.h"
#include "tools/ftexec/device_memory.h"
#include "tools/ftexec/header.h"
#include "tools/ftexec/rank_log.h"
#include "tools/ftexec/rank_run.h"
#include "tools/ftexec/run_events.h"
#include "tools/ftexec/slow_ranks.h"
#include "tools/ftexec/steady_steps.h"
#include "tools/ftexec/text_samples.h"
#include "tools/ftexec/trace_files.h"

namespace ft {
namespace {

// Of a run that ends early: launchers wait about 30 s before they kill.
constexpr int kSecondsForTrace = 15;

class TrainingRun : public RankRun {
 public:
  using RankRun::RankRun;

  absl::Status Execute() override {
    FT_RETURN_IF_ERROR(Prepare());
    FT_RETURN_IF_ERROR(Initialize());
    if (job_.rank() == 0) PrintDoubts(flags_, job_, device_);
    if (job_.rank() == 0)
      PrintHeader(flags_, job_, device_,
                  {.backend = peers_.backend,
                   .staging_bytes = peers_.communicators.staging_bytes(),
                   .link = flags_.emulate_link});
    FT_RETURN_IF_ERROR(loop_->Run(
        *sampler_,
        {.metrics = metrics_.get(),
         .progress = progress_.get(),
         .log = log_.get(),
         .events = events_.get(),
         .observer = Observer(),
         .warn = [this](const std::string& line) { Warn(line); },
         .measured = [this](const StepMetrics& metrics) { times_.Add(metrics); },
         .save_cost = SaveCosts(),
         .compute_time = ComputeTime(),
         .world = job_.world_size() == 1 ? nullptr : &peers_.host(),
         .activity = &report_.activity(),
         .boundary = [this](int64_t steps_done,
                            std::optional<double> eval_loss) { return AtBoundary(steps_done, eval_loss); }},
        evaluator_.get()));
    if (checkpoints_ != nullptr) FT_RETURN_IF_ERROR(checkpoints_->Finish(*loop_));
    progress_.reset();
    report_.activity().Enter(Activity::kFinishing);
    FT_RETURN_IF_ERROR(Finish());
    CompareMemory();
    if (job_.rank() == 0) PrintMemory(job_, device_);
    return CheckLogs();
  }

  bool diverged() const override { return loop_ != nullptr && loop_->diverged(); }

  // A run that fails (a signal, a lost rank, a full disk, NaN) shows what was traced until then. Only where
  // numbers ended it all ranks stand at the same place and can join their parts; else each leaves its own.
  void KeepTrace() override {
    if (trace_ == nullptr || trace_written_) return;
    trace_->EndStep();
    trace_->SetRun(DescribeTrace());
    if (trace_->recorder().num_events() == 0) return;
    guard_.Allow(kSecondsForTrace);
    const absl::Status written = diverged() || job_.world_size() == 1
                                     ? WriteTrace(flags_.trace, trace_->recorder(), peers_.host())
                                     : trace_->recorder().Write(TracePartPath(flags_.trace, job_.rank()));
    if (!written.ok()) PrintError("ftexec: the trace is lost: " + std::string(written.message()));
  }

 private:
  TraceRun DescribeTrace() const {
    return {.plan = PlanHashText(job_.file.hash),
            .device = device_.is_cpu() ? "cpu" : "cuda",
            .replica = job_.bound.mesh.replica,
            .shard = job_.bound.mesh.shard,
            .step_ms = times_.MedianMs(),
            .link = flags_.emulate_link.has_value() ? LinkText(*flags_.emulate_link) : ""};
  }

  // What was lost on the way of the log and of the curves.
  absl::Status CheckLogs() {
    if (log_ == nullptr) return absl::OkStatus();
    log_->Finish();
    const int error = rank_log_->write_error() != 0 ? rank_log_->write_error() : log_->write_error();
    if (error != 0) return PosixError(error, "write", RankLog::PathOf(flags_.log_dir, job_.rank()));
    return events_ == nullptr ? absl::OkStatus() : events_->status();
  }

  absl::Status Prepare() {
    FT_RETURN_IF_ERROR(CreateExecutor());
    FT_RETURN_IF_ERROR(OpenCheckpoints());
    guard_.OnWish([this](Wish wish) { return CanSave() && peers_.monitor->wishes().Request(wish); });
    FT_RETURN_IF_ERROR(MakeLoop());
    if (job_.eval_data != nullptr) {
      eval_batches_ = std::make_unique<EvaluationBatches>(*job_.eval_data, job_.plan().batch(), job_.rank(),
                                                          job_.world_size(), flags_.eval_steps,
                                                          CanFillUpRows(job_.plan()));
      FT_ASSIGN_OR_RETURN(Evaluator evaluator,
                          Evaluator::Create(job_.plan(), *executor_, *eval_batches_,
                                            static_cast<uint64_t>(job_.seed), job_.rank()));
      evaluator_ = std::make_unique<Evaluator>(std::move(evaluator));
    }
    if (job_.prompts.has_value()) {
      FT_ASSIGN_OR_RETURN(TextSamples samples, TextSamples::Create(flags_, job_, *executor_));
      samples_.emplace(std::move(samples));
    }
    return OpenOutputs();
  }

  // Where the run goes on from, which settles what the job is.
  absl::Status OpenCheckpoints() {
    if (!flags_.saves() && flags_.resume.empty()) return absl::OkStatus();
    const Checkpoints::Voice voice = {.say = [this](const std::string& line) { Say(line); },
                                      .warn = [this](const std::string& line) { Warn(line); }};
    FT_ASSIGN_OR_RETURN(checkpoints_, Checkpoints::Open(flags_, job_, device_, *executor_, *peers_.monitor,
                                                        peers_.rendezvous->peers(), voice));
    checkpoints_->Tell(&report_.activity(), &report_.saving());
    report_.activity().Enter(Activity::kLoading);
    FT_ASSIGN_OR_RETURN(resumed_, checkpoints_->Begin());
    return absl::OkStatus();
  }

  absl::Status MakeLoop() {
    const auto seed = static_cast<uint64_t>(job_.seed);
    const TrainingOptions options{.steps = job_.steps,
                                  .lr = job_.lr,
                                  .seed = seed,
                                  .rank = job_.rank(),
                                  .world_size = job_.world_size(),
                                  .max_bad_steps = job_.max_bad_steps,
                                  .find_nan = flags_.find_nan,
                                  .eval_every = flags_.eval_every,
                                  .peak_flops = device_.PeakFlops(job_.plan()),
                                  .utilization = [this] { return device_.device().utilization_percent(); }};
    FT_ASSIGN_OR_RETURN(TrainingLoop loop, TrainingLoop::Create(job_.plan(), *executor_, options));
    loop_ = std::make_unique<TrainingLoop>(std::move(loop));
    const int64_t consumed = resumed_ ? checkpoints_->position().sequences : 0;
    sampler_ = std::make_unique<BatchSampler>(*job_.data, job_.plan().batch(), job_.rank(), job_.world_size(),
                                              seed, job_.shuffle, consumed);
    return absl::OkStatus();
  }

  // Whether this run writes checkpoints; it takes no wishes for them else. The same on all ranks.
  bool CanSave() const { return flags_.saves(); }

  std::function<std::optional<SaveCost>()> SaveCosts() {
    if (!CanSave()) return {};
    return [this] { return checkpoints_->TakeCost(); };
  }

  std::function<std::optional<ComputeSpread>(int64_t, double)> ComputeTime() {
    if (job_.world_size() == 1) return {};
    return [this](int64_t step, double compute_ms) {
      return ReportStepTime(peers_.monitor->step_times(), step, compute_ms,
                            [this](const std::string& line) { Warn(line); });
    };
  }

  absl::Status OpenOutputs() {
    if (job_.rank() == 0) {
      progress_ = std::make_unique<Progress>(STDOUT_FILENO, flags_.progress, job_.steps);
      if (!flags_.metrics.empty()) {
        if (resumed_)
          FT_RETURN_IF_ERROR(MetricsFile::KeepSteps(flags_.metrics, checkpoints_->position().steps));
        FT_ASSIGN_OR_RETURN(metrics_,
                            MetricsFile::Open(flags_.metrics, resumed_ ? MetricsFile::OpenMode::kAppend
                                                                       : MetricsFile::OpenMode::kTruncate));
        if (device_.is_cpu() && !IsToldAlready())
          metrics_->AddOnce("instruction_set", device_.instruction_set());
      }
    }
    if (!flags_.log_dir.empty()) {
      const std::string beginning =
          BeginningOfRun(job_.environment, PlanHashText(job_.file.hash), FirstStep(), absl::Now());
      FT_ASSIGN_OR_RETURN(rank_log_, RankLog::Open(flags_.log_dir, job_.rank(), beginning));
      log_ = std::make_unique<Progress>(rank_log_->fd(), ProgressMode::kAuto, job_.steps);
      if (job_.rank() == 0) {
        FT_ASSIGN_OR_RETURN(events_, OpenTrainingEvents(flags_, job_, device_, peers_.backend, FirstStep(),
                                                        [this](const std::string& line) { Warn(line); }));
      }
    }
    if (!flags_.trace.empty()) {
      trace_ = std::make_unique<TraceSession>(
          job_.plan(), *executor_, loop_->programs().num_commands(*executor_), job_.rank(),
          TraceSession::Steps{.first = FirstStep(), .count = flags_.trace_steps});
      if (flags_.emulate_link.has_value()) trace_->SetLabel(LinkText(*flags_.emulate_link));
    } else if (job_.rank() == 0 && IsPredicted(job_.plan(), !device_.is_cpu()) &&
               job_.steps - FirstStep() >= SteadySteps::kCompared) {
      const int64_t step = FirstStep() + SteadySteps::kCompared - 1;
      observed_ = std::make_unique<InstructionTimes>(job_.plan(), *executor_, step);
      times_.LeaveOut(step);
    }
    ReportMemory();
    return absl::OkStatus();
  }

  StepObserver* Observer() {
    if (trace_ != nullptr) return trace_.get();
    return observed_.get();
  }

  // Memory by class, which no step changes.
  void ReportMemory() {
    if (metrics_ == nullptr && trace_ == nullptr) return;
    const MemoryReport memory = MemoryOf(job_);
    const bool told = metrics_ == nullptr || IsToldAlready();
    const auto report = [&](const char* key, const char* counter, const ArenaReport& arena) {
      if (arena.arena_bytes == 0) return;
      const auto bytes = BytesByKey(arena);
      if (!told) metrics_->AddOnce(key, bytes);
      if (trace_ != nullptr) trace_->CountParts(counter, bytes);
    };
    report("bytes", "arena, bytes", memory.device);
    report("host_bytes", "host arena, bytes", memory.host);
  }

  // Lines that a resumed run goes on from say what is said once of a run. So the file is, but for times, as
  // if the run had not been interrupted.
  bool IsToldAlready() const {
    return resumed_ && checkpoints_->is_same_setup() && metrics_->has_earlier_lines();
  }

  absl::Status Initialize() {
    report_.activity().Enter(Activity::kLoading);
    if (resumed_) return loop_->Resume(checkpoints_->position(), checkpoints_->stability());
    if (job_.init.empty() || job_.init_draws) {
      FT_RETURN_IF_ERROR(loop_->Initialize());
    } else {
      loop_->InitializeWithoutParameters();
    }
    for (const InitialWeights& source : job_.init) {
      FT_RETURN_IF_ERROR(LoadWeights(job_.plan(), *executor_, source));
      if (job_.rank() != 0) continue;
      for (const std::string& note : source.notes) PrintNote(note);
    }
    job_.init.clear();
    return absl::OkStatus();
  }

  // Of a GPU with what was announced: at the end, and when a step has been enqueued and one recorded.
  void CompareMemory() {
    if (job_.rank() != 0 || device_.is_cpu() || device_.may_share() || told_memory_) return;
    const std::string line =
        LowAnnouncement(job_.plan(), job_.bound, device_.Memory(job_.bound.arena_bytes()));
    told_memory_ = !line.empty();
    if (told_memory_) Warn(line);
  }

  absl::StatusOr<bool> AtBoundary(int64_t steps_done, std::optional<double> eval_loss) {
    if (boundaries_ < 2 && ++boundaries_ == 2) CompareMemory();
    if (!told_prediction_ && times_.AreComparable() && job_.rank() == 0) ComparePrediction();
    const bool shows =
        samples_.has_value() && (steps_done % flags_.sample_every == 0 || steps_done == job_.steps);
    if (shows) FT_RETURN_IF_ERROR(ShowSamples(steps_done));
    if (checkpoints_ == nullptr) return false;
    FT_ASSIGN_OR_RETURN(const bool ends, checkpoints_->AtBoundary(*loop_, eval_loss));
    ends_early_ = ends && loop_->position().steps < job_.steps;  // after the last step it ends anyway
    if (ends_early_) guard_.EndedAsWished();
    return ends_early_;
  }

  void ComparePrediction() {
    told_prediction_ = true;
    const std::string line =
        PredictedLine(times_, observed_.get(), job_.plan(), job_.bound, !device_.is_cpu());
    if (line.empty()) return;
    Say(flags_.emulate_link.has_value() ? line + "; over an " + LinkText(*flags_.emulate_link) : line);
  }

  absl::Status ShowSamples(int64_t steps_done) {
    FT_RETURN_IF_ERROR(loop_->Report());
    report_.activity().Enter(Activity::kEvaluating, steps_done - 1);
    const absl::Status shown =
        samples_->Make(flags_.sample_tokens, steps_done - 1, metrics_.get(),
                       [&](const std::string& prompt, const std::string& text) {
                         Say("sample after step " + std::to_string(steps_done) + ":\n" + prompt + text);
                         return absl::OkStatus();
                       });
    // Training may recover from such weights, and has a way of its own to say when not.
    if (!absl::IsInvalidArgument(shown)) return shown;
    Warn("no sample after step " + std::to_string(steps_done) + ": " + std::string(shown.message()));
    return absl::OkStatus();
  }

  absl::Status Finish() {
    if (!flags_.save_weights.empty() && !ends_early_) {
      FT_RETURN_IF_ERROR(SaveWeights(job_.plan(), *executor_, peers_.host(), flags_.save_weights));
    }
    if (!flags_.save_hf.empty() && !ends_early_) {
      FT_ASSIGN_OR_RETURN(const SavedFolder saved,
                          SaveFolder(job_.plan(), *executor_, peers_.host(), FolderRequestOf(flags_)));
      for (const std::string& note : saved.notes) Say("'" + flags_.save_hf + "': " + note);
    }
    trace_written_ = true;
    if (trace_ != nullptr) trace_->SetRun(DescribeTrace());
    return trace_ == nullptr ? absl::OkStatus() : WriteTrace(flags_.trace, trace_->recorder(), peers_.host());
  }

  // The number of the first step that this run takes.
  int64_t FirstStep() const { return resumed_ ? checkpoints_->position().steps : 0; }

  // What is said comes after the line of the last step, but for what is found while that is written.
  void Say(const std::string& line) override {
    ReportStep();
    if (progress_ != nullptr) progress_->Finish();
    RankRun::Say(line);
  }

  // About a step that all ranks skipped, curves that end or a slow rank: rank 0 says it for all of them.
  void Warn(const std::string& line) {
    ReportStep();
    if (rank_log_ != nullptr) RankLog::Append(flags_.log_dir, job_.rank(), "ftexec: " + line + "\n");
    if (job_.rank() != 0) return;
    if (progress_ != nullptr) progress_->Finish();
    PrintError("ftexec: " + line);
  }

  // The loop keeps an error, and ends with it.
  void ReportStep() {
    if (loop_ != nullptr) loop_->Report().IgnoreError();
  }

  std::unique_ptr<Checkpoints> checkpoints_;  // null: none are written or read
  bool resumed_ = false;
  int boundaries_ = 0;  // so far, up to 2
  bool told_prediction_ = false;
  bool told_memory_ = false;  // that more is taken than was announced
  bool ends_early_ = false;   // with a checkpoint, as somebody wished
  SteadySteps times_{flags_.trace.empty() ? 0 : flags_.trace_steps};
  std::unique_ptr<TrainingLoop> loop_;
  std::unique_ptr<BatchSampler> sampler_;
  std::unique_ptr<EvaluationBatches> eval_batches_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<TextSamples> samples_;
  std::unique_ptr<RankLog> rank_log_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Progress> log_;
  std::unique_ptr<TrainingEvents> events_;
  std::unique_ptr<TraceSession> trace_;
  std::unique_ptr<InstructionTimes> observed_;  // what the prediction is compared with
  bool trace_written_ = false;                  // or tried to be
};

}  // namespace

absl::Status Train(const Flags& flags, Job& job, const NcclSource& load_nccl, ProcessGuard& guard,
                   FailureReport& report) {
  const auto make = [&](RankDevice& device, Peers& peers) -> std::unique_ptr<RankRun> {
    return std::make_unique<TrainingRun>(flags, job, device, peers, guard, report);
  };
  return RunTogether(flags, job, load_nccl, guard, report, make);
}

}  // namespace ft
