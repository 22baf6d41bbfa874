// Rotary positions of a model, plain or scaled for longer contexts than those of its training.
#pragma once

#include <string>

#include "models/base/graph_builder.h"

namespace ft::models {

// Angles are position * frequency; cosines and sines are multiplied by `scale`. As transformers'
// ROPE_INIT_FUNCTIONS define them, of the papers they name: linear, dynamic, yarn, longrope, llama3.
struct Rotary {
  std::vector<double> frequencies; // of half of the rotated elements of a head
  double scale = 1;
};

// Of layers with the sliding window, or of the others. The config has passed checkRotary.
Rotary rotaryOf(const ModelConfig &config, bool slides);

// x [batch, seq, heads * head size] with the first rope_fraction of each head rotated.
mlir::Value rotate(GraphBuilder &graph, const ModelConfig &config, mlir::Value x, int64_t heads, bool slides);

// One clear line when there are no such positions, else empty.
std::string checkRotary(const ModelConfig &config);

// The facts that these read.
std::vector<::ft::FactMember> rotaryFacts();

} // namespace ft::models
