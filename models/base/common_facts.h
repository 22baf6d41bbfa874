// The facts of a model that are its dimensions.
#pragma once

#include "models/base/config.h"
#include "runtime/base/model_facts.h"

namespace ft::models {

// What a config says in every family: sizes, norm epsilon, dropout. The rest is the family's.
::ft::ModelFacts commonFacts(const ModelConfig &config);

} // namespace ft::models
