#include "models/base/model_spec.h"

namespace ft::models {

using ::ft::FactMember;
using Facts = ::ft::ModelFacts;

std::vector<FactMember> withCommonFacts(std::vector<FactMember> more) {
  std::vector<FactMember> facts = {
      &Facts::model_type,       &Facts::vocab_size,       &Facts::hidden_size, &Facts::num_layers,
      &Facts::num_heads,        &Facts::num_kv_heads,     &Facts::head_size,   &Facts::intermediate_size,
      &Facts::max_positions,    &Facts::norm_eps,         &Facts::activation,  &Facts::embedding_dropout,
      &Facts::residual_dropout, &Facts::attention_dropout};
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

} // namespace ft::models
