// What users may change of a preset: the options of `ftc model`, a row each.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "models/base/config.h"

namespace ft::models {

struct ModelSpec;

struct ModelOption {
  const char *name; // "kv-heads"
  std::variant<int64_t ModelConfig::*, double ModelConfig::*, std::string ModelConfig::*, bool ModelConfig::*>
      member;           // bool: a flag
  double least, below;  // of numbers
  const char *allowed;  // of texts: "a|b"
  const char *typeName; // for --help: "N"
  const char *help;
};

const std::vector<ModelOption> &modelOptions();

// Whether it is one of applyShapes.
bool changesNoFact(const ModelOption &option);

// Name of an option -> its value, of the type of the member. Without "kv-heads", these follow "heads" where a
// preset has as many of both; without "seq", sequences are no longer than the context.
using OptionValue = std::variant<int64_t, double, std::string, bool>;
using Overrides = std::map<std::string, OptionValue>;

// Changes `config`. Returns one line that says which options do not fit, or an empty string. All of
// `overrides` are options of the family.
std::string applyOverrides(const ModelSpec &spec, const Overrides &overrides, ModelConfig &config);

// The same of a model whose facts are not ours to change: batch, seq, packed and routing, and with "dropout"
// the rate of all dropout that it has. Without "seq", sequences are at most 2048 tokens and no longer than
// the model's positions.
std::string applyShapes(const ModelSpec &spec, const Overrides &overrides, ModelConfig &config);

// Whether the family takes the option.
bool takesOption(const ModelSpec &spec, const std::string &name);

} // namespace ft::models
