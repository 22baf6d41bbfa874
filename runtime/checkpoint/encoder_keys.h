// Keys that the config.json of BERT and its kin, such as ViT, have in common, read and written.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "runtime/checkpoint/config_reader.h"

namespace ft {

// Sizes, LayerNorm and an MLP with biases, positions from a table; attention sees everything. `dropout` where
// nothing is said.
void ReadEncoder(ConfigReader& c, double dropout);
void WriteEncoder(const ModelFacts& facts, nlohmann::json& config);

// Classes of a classifier, whose names are id2label; two where there are none.
int64_t LabelsOf(ConfigReader& c);
// A classifier whose loss is the cross entropy of one class an example: refuses others.
void CheckClassifier(ConfigReader& c, int64_t labels);
void WriteLabels(const ModelFacts& facts, nlohmann::json& config);

}  // namespace ft
