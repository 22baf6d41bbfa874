// The config.json of a model, from what a plan or a manifest says of it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/state_layout.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// As ConfigJson writes it, of the type in which `state` keeps weights; of several, float32. `facts` are those
// of `owner`, "the plan". Errors: FailedPrecondition where it does not say its model's facts; those of
// FactsOf and ConfigJson.
absl::StatusOr<std::string> ConfigOfModel(std::string_view owner,
                                          const google::protobuf::RepeatedPtrField<proto::Attribute>& facts,
                                          const StateLayout& state);

}  // namespace ft
