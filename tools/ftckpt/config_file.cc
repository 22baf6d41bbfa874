#include "tools/ftckpt/config_file.h"

#include <optional>

#include "runtime/base/model_facts.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_facts.h"
#if __has_include("runtime/checkpoint/config_writer.h")
#include "runtime/checkpoint/config_writer.h"
#endif

namespace ft::ckpt {
namespace {

absl::StatusOr<std::string> TextOfFacts(const ModelFacts& facts, DType weights) {
#if __has_include("runtime/checkpoint/config_writer.h")
  return ConfigJson(facts, weights);
#else
  return absl::UnimplementedError("this program does not write one yet");
#endif
}

}  // namespace

absl::StatusOr<std::string> ConfigText(const proto::Manifest& manifest, DType weights) {
  proto::Plan plan;
  *plan.mutable_facts() = manifest.model().facts();
  FT_ASSIGN_OR_RETURN(const std::optional<ModelFacts> facts, FactsOf(plan));
  if (!facts.has_value()) return absl::InvalidArgumentError("the manifest has no facts of the model");
  return TextOfFacts(*facts, weights);
}

}  // namespace ft::ckpt
