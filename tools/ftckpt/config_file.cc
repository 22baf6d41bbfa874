#include "tools/ftckpt/config_file.h"

#include <optional>

#include "runtime/base/model_facts.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_writer.h"
#include "runtime/plan/plan_facts.h"

namespace ft::ckpt {
absl::StatusOr<std::string> ConfigText(const proto::Manifest& manifest, DType weights) {
  proto::Plan plan;
  *plan.mutable_facts() = manifest.model().facts();
  FT_ASSIGN_OR_RETURN(const std::optional<ModelFacts> facts, FactsOf(plan));
  if (!facts.has_value()) return absl::InvalidArgumentError("the manifest has no facts of the model");
  return ConfigJson(*facts, weights);
}

}  // namespace ft::ckpt
