#include "tools/ftexec/text_samples.h"

#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"

namespace ft {

absl::StatusOr<TextSamples> TextSamples::Create(const Flags& flags, const Job& job, Executor& executor) {
  FT_ASSIGN_OR_RETURN(TextContinuer continuer, TextContinuer::Create(job.plan(), executor));
  return TextSamples(flags, job, std::move(continuer));
}

absl::Status TextSamples::Make(int64_t tokens, std::optional<int64_t> step, MetricsFile* metrics,
                               const Show& show) {
  const TokenChoice choice = {
      .temperature = flags_.temperature, .top_k = flags_.top_k, .seed = static_cast<uint64_t>(job_.seed)};
  absl::Status status;  // of the first prompt that could not be continued; the ranks go on together
  for (size_t number = 0; number < job_.prompts->all().size(); ++number) {
    const std::vector<int32_t>& prompt = job_.prompts->all()[number];
    const absl::StatusOr<std::vector<int32_t>> made =
        continuer_.Continue(prompt, tokens, choice, job_.prompts->end(), static_cast<uint32_t>(number));
    if (absl::IsInvalidArgument(made.status())) {
      status.Update(made.status());
      continue;
    }
    FT_RETURN_IF_ERROR(made.status());
    const std::string text = job_.prompts->TextOf(*made);
    if (metrics != nullptr) {
      nlohmann::ordered_json line;
      if (step.has_value()) line["step"] = *step;
      line["sample"] = number;
      line["sample_tokens"] = *made;
      line["sample_text"] = text;
      FT_RETURN_IF_ERROR(metrics->WriteObject(line.dump()));
    }
    if (job_.rank() == 0) FT_RETURN_IF_ERROR(show(job_.prompts->TextOf(prompt), text));
  }
  return status;
}

}  // namespace ft
