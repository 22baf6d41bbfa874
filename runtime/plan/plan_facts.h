// The facts of the model in a plan.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/model_facts.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

void SetFacts(const ModelFacts& facts, proto::Plan& plan);

// Nothing when the plan has none. InvalidArgument: a fact that we do not know (the plan may be of a newer
// ftc), one twice or of another type, and whatever CheckFacts finds.
absl::StatusOr<std::optional<ModelFacts>> FactsOf(const proto::Plan& plan);
// Of Plan.facts that stand elsewhere.
absl::StatusOr<std::optional<ModelFacts>> FactsOf(
    const google::protobuf::RepeatedPtrField<proto::Attribute>& attributes);

}  // namespace ft
