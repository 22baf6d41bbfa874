// What a builder of a model is given: the facts of the model, and the shapes of a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/model_facts.h"

namespace ft::models {

// The facts are those of a config.json or of a preset; facts that a family has no use for keep their initial
// values. They go into the module as they are, so that what was built can be compared with what weights are
// of.
struct ModelConfig : ::ft::ModelFacts {
  int64_t batch = 0;             // examples per rank and step
  int64_t seq = 0;               // tokens of each; 0: no tokens
  bool packed = false;           // documents are packed into sequences: inputs "segments" and "positions"
  std::string routing = "dense"; // of mixtures: "dense": every expert computes all tokens; "grouped": its own

  // Of the Free Transformer.
  double beta = 1.0;  // weight of the KL term
  double kappa = 0.0; // nats of KL that are free

  bool slides(int64_t layer) const; // attention has the sliding window
};

// Sizes of a preset, which the options of `ftc model` may change; what follows of them does then.
struct Sizes {
  int64_t hidden, layers, heads, kvHeads, ffn, vocab, context;
  int64_t headSize = 0; // 0: hidden / heads
};

// A long context is asked for, not stumbled into.
inline constexpr int64_t kDefaultSeq = 2048;

// A config of these sizes, of one example of at most kDefaultSeq tokens.
ModelConfig configOf(const char *modelType, const Sizes &sizes);

// The same, of four examples of all of the context: what trains in seconds.
ModelConfig debugConfigOf(const char *modelType, const Sizes &sizes);

struct Preset {
  std::string name;                 // "124m"
  std::string fullName;             // "gpt2-124m", which users may give in place of the family's name
  std::vector<std::string> aliases; // further names of the preset
  ModelConfig config;
};

} // namespace ft::models
