// Shows how a model continues the prompts of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/executor/continue_text.h"
#include "runtime/metrics/jsonl.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"

namespace ft {

class TextSamples {
 public:
  // All must outlive it; `job` has prompts. Errors: those of TextContinuer::Create.
  static absl::StatusOr<TextSamples> Create(const Flags& flags, const Job& job, Executor& executor);

  // Continues each prompt by `tokens`; on all ranks together. Gives rank 0 what to show: what stands before
  // `text` is what the model was given. `metrics`, unless null, gets a line each: {"step":9,"sample":0,
  // "sample_tokens":[...],"sample_text":"..."}; without "step" where nothing is trained. Errors: of logits
  // that no token can be chosen by, InvalidArgument, after all prompts; those of collectives, of `metrics`,
  // `show`.
  using Show = std::function<absl::Status(const std::string& prompt, const std::string& text)>;
  absl::Status Make(int64_t tokens, std::optional<int64_t> step, MetricsFile* metrics, const Show& show);

 private:
  TextSamples(const Flags& flags, const Job& job, TextContinuer continuer)
      : flags_(flags), job_(job), continuer_(std::move(continuer)) {}

  const Flags& flags_;
  const Job& job_;
  TextContinuer continuer_;
};

}  // namespace ft
