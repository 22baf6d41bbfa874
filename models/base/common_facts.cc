#include "models/base/common_facts.h"

namespace ft::models {

::ft::ModelFacts commonFacts(const ModelConfig &config) {
  ::ft::ModelFacts facts;
  facts.vocab_size = config.vocab;
  facts.hidden_size = config.hidden;
  facts.num_layers = config.layers;
  facts.num_heads = config.heads;
  facts.num_kv_heads = config.kvHeads;
  facts.head_size = config.sizeOfHead();
  facts.intermediate_size = config.ffn;
  facts.max_positions = config.context;
  facts.norm_eps = config.normEps;
  facts.embedding_dropout = facts.residual_dropout = config.dropout;
  return facts;
}

} // namespace ft::models
