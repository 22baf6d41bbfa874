#include "tools/ftexec/inference.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/collective/liveness/agreement.h"
#include "runtime/executor/evaluation.h"
#include "runtime/executor/load_weights.h"
#include "runtime/executor/resume.h"
#include "runtime/metrics/jsonl.h"
#include "runtime/plan/inputs.h"
#include "tools/ftexec/checkpoints.h"
#include "tools/ftexec/header.h"
#include "tools/ftexec/rank_run.h"
#include "tools/ftexec/text_samples.h"

namespace ft {
namespace {

class InferenceRun : public RankRun {
 public:
  using RankRun::RankRun;

  absl::Status Execute() override {
    FT_RETURN_IF_ERROR(CreateExecutor());
    report_.activity().Enter(Activity::kLoading);
    FT_RETURN_IF_ERROR(Load());
    if (job_.rank() == 0) {
      PrintDoubts(flags_, job_, device_);
      if (flags_.evaluate)
        PrintHeader(flags_, job_, device_,
                    {.backend = peers_.backend,
                     .staging_bytes = peers_.communicators.staging_bytes(),
                     .link = flags_.emulate_link});
      if (!flags_.metrics.empty()) {
        FT_ASSIGN_OR_RETURN(metrics_, MetricsFile::Open(flags_.metrics));
      }
    }
    report_.activity().Enter(Activity::kEvaluating);
    return flags_.evaluate ? Evaluate() : Generate();
  }

 private:
  absl::Status Load() {
    if (job_.init.empty()) return LoadCheckpoint();
    // Adapters that nothing has stay zero, and add nothing.
    for (const InitialWeights& source : job_.init) {
      FT_RETURN_IF_ERROR(LoadWeights(job_.plan(), *executor_, source));
      if (job_.rank() != 0) continue;
      // Standard output is the text.
      for (const std::string& note : source.notes) flags_.evaluate ? PrintNote(note) : Tell(note);
    }
    job_.init.clear();
    return absl::OkStatus();
  }

  absl::Status LoadCheckpoint() {
    FT_ASSIGN_OR_RETURN(StateLayout state, StateOfPlan(job_.plan(), job_.bound.mesh));
    const StateLayout weights = WeightsOf(std::move(state));
    ResumeRequest request = ResumeRequestOf(flags_, job_.plan());
    request.weights_only = true;
    const AgreeFunction agree = [this](std::string_view topic, uint64_t number, std::string payload,
                                       auto decide) {
      return peers_.monitor->Agree(topic, number, std::move(payload), decide,
                                   std::max(kCheckpointPatience, flags_.timeout));
    };
    FT_ASSIGN_OR_RETURN(const Resumed resumed, Resume(request, job_.plan(), weights, *executor_, agree));
    if (job_.rank() == 0)
      for (const std::string& note : resumed.notes) Tell(note);
    if (resumed.reader == nullptr)
      return absl::NotFoundError(
          fmt::format("--resume=auto found no checkpoint in '{}'", flags_.checkpoint_dir));
    const int64_t steps = static_cast<int64_t>(resumed.reader->manifest().position().steps());
    if (flags_.evaluate)
      Say(fmt::format("weights of '{}', after {} step{}", resumed.reader->folder(), steps,
                      steps == 1 ? "" : "s"));
    return absl::OkStatus();
  }

  static void Tell(const std::string& note) { PrintError("ftexec: note: " + note); }

  absl::Status Evaluate() {
    const EvaluationBatches batches(*job_.eval_data, static_cast<int64_t>(job_.plan().batch()), job_.rank(),
                                    job_.world_size(), flags_.eval_steps, CanFillUpRows(job_.plan()));
    FT_ASSIGN_OR_RETURN(
        Evaluator evaluator,
        Evaluator::Create(job_.plan(), *executor_, batches, static_cast<uint64_t>(job_.seed), job_.rank()));
    FT_ASSIGN_OR_RETURN(const EvaluationResult result, evaluator.Run());
    if (result.tokens == 0)
      return KnownToAll(
          absl::InvalidArgumentError("none of the targets that were evaluated counts, so there is no loss; "
                                     "give --data with targets that are not masked"));
    if (job_.rank() == 0) FT_RETURN_IF_ERROR(Show(result));
    if (std::isfinite(result.loss)) return absl::OkStatus();
    return KnownToAll(absl::InvalidArgumentError(
        fmt::format("the loss is {}: the weights are no trained ones, or have diverged", result.loss)));
  }

  absl::Status Show(const EvaluationResult& result) {
    std::vector<EvaluationOutput> outputs;
    if (LossIsOfTokens(job_.plan()))
      outputs.push_back({.name = "perplexity",
                         .key = "eval_perplexity",
                         .tag = "eval/perplexity",
                         .value = std::exp(result.loss)});
    outputs.insert(outputs.end(), result.outputs.begin(), result.outputs.end());
    const EvaluationMetrics metrics{.step = -1,
                                    .loss = result.loss,
                                    .tokens = result.tokens,
                                    .counted = CountedWord(job_.plan()),
                                    .outputs = outputs};
    std::string line = fmt::format("loss {:.6f}", metrics.loss);
    for (const EvaluationOutput& output : outputs)
      line += fmt::format("  {} {:.6g}", output.name, output.value);
    Say(line + fmt::format("  over {} {}", metrics.tokens, metrics.counted));
    return metrics_ == nullptr ? absl::OkStatus() : metrics_->WriteEvaluation(metrics);
  }

  absl::Status Generate() {
    FT_ASSIGN_OR_RETURN(TextSamples samples, TextSamples::Create(flags_, job_, *executor_));
    return samples.Make(flags_.generate, std::nullopt, metrics_.get(),
                        [](const std::string&, const std::string& text) { return PrintOut(text + "\n"); });
  }

  std::unique_ptr<MetricsFile> metrics_;
};

}  // namespace

absl::Status Infer(const Flags& flags, Job& job, const NcclSource& load_nccl, ProcessGuard& guard,
                   FailureReport& report) {
  const auto make = [&](RankDevice& device, Peers& peers) -> std::unique_ptr<RankRun> {
    return std::make_unique<InferenceRun>(flags, job, device, peers, guard, report);
  };
  return RunTogether(flags, job, load_nccl, guard, report, make);
}

}  // namespace ft
