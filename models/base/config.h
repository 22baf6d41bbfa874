// Dimensions of a model, and what else its builder has to know.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ft::models {

// Everything a builder needs. Fields that a family has no use for keep their initial values.
struct ModelConfig {
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;  // heads of keys and values; divides heads
  int64_t headSize = 0; // 0: hidden / heads
  int64_t ffn = 0;      // width of the MLP, or of each expert
  int64_t vocab = 0;
  int64_t context = 0; // longest sequence
  int64_t batch = 0;   // examples per rank and step
  int64_t seq = 0;     // tokens of each
  double normEps = 1e-5;
  double ropeBase = 1e4;
  bool tiedHead = false;
  double dropout = 0; // of the embedding and of what is added to the residual stream

  // Of decoders (models/base/decoder.h).
  const char *modelType = ""; // as transformers calls the family
  bool qkvBias = false;
  bool qkNorm = false;         // rms_norm of each head of queries and keys
  bool gemma = false;          // norms times 1 + weight, before and after; GeGLU; scaled embedding
  int64_t window = 0;          // of attention in layers that slide; 0: none do
  int64_t fullEvery = 0;       // every so many-th layer does not slide; 0: all do
  double slidingRopeBase = 0;  // of layers that slide; 0: ropeBase
  double attentionScale = 0;   // 0: 1 / sqrt(head size)
  double attentionSoftcap = 0; // 0: none
  double logitSoftcap = 0;     // 0: none

  // Of mixtures of experts.
  int64_t experts = 0;
  int64_t activeExperts = 0;     // of each token
  bool normalizedRouting = true; // the weights of a token's experts sum to 1
  double routerLoss = 0;         // weight of the load-balancing loss
  std::string routing = "dense"; // "dense": every expert computes all tokens; "grouped": its own

  // Of classifiers and of pictures.
  int64_t labels = 0;
  int64_t tokenTypes = 0;
  int64_t image = 0; // pixels of a side
  int64_t patch = 0;
  int64_t channels = 0;

  // Of the Free Transformer.
  int64_t latentBits = 0;
  double beta = 1.0;  // weight of the KL term
  double kappa = 0.0; // nats of KL that are free

  int64_t sizeOfHead() const { return headSize > 0 ? headSize : hidden / heads; }
  bool slides(int64_t layer) const { return window > 0 && (fullEvery == 0 || (layer + 1) % fullEvery != 0); }
};

struct Preset {
  std::string name;                 // "124m"
  std::string fullName;             // "gpt2-124m", which users may give in place of the family's name
  std::vector<std::string> aliases; // further names of the preset
  ModelConfig config;
};

} // namespace ft::models
