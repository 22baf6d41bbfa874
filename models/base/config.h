// Dimensions of a model, and what a user may change of a preset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ft::models {

// Everything a builder needs. Fields that a family has no use for are ignored by it.
struct ModelConfig {
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0; // heads of keys and values; divides heads
  int64_t ffn = 0;     // width of the MLP
  int64_t vocab = 0;
  int64_t context = 0; // longest sequence
  int64_t batch = 0;   // sequences per rank and step
  int64_t seq = 0;     // tokens of each
  double normEps = 1e-5;
  double ropeBase = 1e4;
  bool tiedHead = false;
  bool qkvBias = false;
  double dropout = 0; // of the embedding, of what is added to the residual stream, and where families say so
  int64_t latentBits = 0; // 0: no latent variable
  double beta = 1.0;      // weight of the KL term
  double kappa = 0.0;     // nats of KL that are free
};

struct Preset {
  std::string name;                 // "124m"
  std::string fullName;             // "gpt2-124m", which users may give in place of the family's name
  std::vector<std::string> aliases; // further names of the preset
  ModelConfig config;
};

// Options of `ftc model`; absent ones keep the preset's value. Without `kvHeads`, kv heads follow `heads`
// where a preset has as many of both; without `seq`, sequences are no longer than the context.
struct Overrides {
  std::optional<int64_t> batch, seq, layers, hidden, heads, kvHeads, ffn, vocab, context, latentBits;
  std::optional<double> beta, kappa, dropout;
};

} // namespace ft::models
