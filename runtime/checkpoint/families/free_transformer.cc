// The config.json of the Free Transformer, which is ours: transformers has no such model.
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/decoder_keys.h"

namespace ft::config_families::free_transformer {
namespace {

using nlohmann::json;

// Not of transformers: the file is one of ours.
void ReadFreeTransformer(ConfigReader& c) {
  ReadLlama(c);
  c.Read("latent_bits", &Facts::latent_bits, 0);
}

void WriteFreeTransformer(const ModelFacts& facts, json& config) {
  WriteLlama(facts, config);
  config["latent_bits"] = facts.latent_bits;
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"free_transformer", {}, ReadFreeTransformer, WriteFreeTransformer});
}

}  // namespace ft::config_families::free_transformer
