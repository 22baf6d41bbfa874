#include "models/base/config.h"

#include <algorithm>

namespace ft::models {

bool ModelConfig::slides(int64_t layer) const {
  return sliding_window > 0 &&
         (sliding_layers.empty() || std::binary_search(sliding_layers.begin(), sliding_layers.end(), layer));
}

ModelConfig configOf(const char *modelType, const Sizes &sizes) {
  ModelConfig config;
  config.model_type = modelType;
  config.hidden_size = sizes.hidden;
  config.num_layers = sizes.layers;
  config.num_heads = sizes.heads;
  config.num_kv_heads = sizes.kvHeads;
  config.head_size = sizes.headSize;
  config.intermediate_size = sizes.ffn;
  config.vocab_size = sizes.vocab;
  config.max_positions = sizes.context;
  config.norm_eps = 1e-5;
  config.batch = 1;
  config.seq = std::min(sizes.context, kDefaultSeq);
  return config;
}

ModelConfig debugConfigOf(const char *modelType, const Sizes &sizes) {
  ModelConfig config = configOf(modelType, sizes);
  config.batch = 4;
  config.seq = sizes.context;
  return config;
}

} // namespace ft::models
