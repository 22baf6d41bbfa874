// The config.json of the Vision Transformer as a classifier of pictures.
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/encoder_keys.h"

namespace ft::config_families::vit {
namespace {

using nlohmann::json;

void ReadVit(ConfigReader& c) {
  ReadEncoder(c, 0);
  c.Read("qkv_bias", &ModelFacts::qkv_bias, true);
  c.Read("image_size", &ModelFacts::image_size, 224);
  c.Read("patch_size", &ModelFacts::patch_size, 16);
  c.Read("num_channels", &ModelFacts::num_channels, 3);
  const int64_t labels = LabelsOf(c);
  c.Set(&ModelFacts::num_labels, labels, "id2label");
  CheckClassifier(c, labels);
  if (const int64_t patch = c.facts().patch_size; patch > 0) {
    const int64_t side = c.facts().image_size / patch;
    // Of more pixels than a side may have there is no such model.
    c.Set(&ModelFacts::max_positions, side < (1 << 16) ? side * side + 1 : 0, "image_size");
  }
  // The decoder of another model, and a layer behind what a classifier sees.
  c.Ignore({"encoder_stride", "pooler_output_size", "pooler_act"});
}

void WriteVit(const ModelFacts& facts, json& config) {
  WriteEncoder(facts, config);
  config["qkv_bias"] = facts.qkv_bias;
  config["image_size"] = facts.image_size;
  config["patch_size"] = facts.patch_size;
  config["num_channels"] = facts.num_channels;
  WriteLabels(facts, config);
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"vit",
                      {"ViTForImageClassification"},
                      ReadVit,
                      WriteVit,
                      {{"vit.encoder.layer.", "vit.layers."},
                       {".attention.attention.query", ".attention.q_proj"},
                       {".attention.attention.key", ".attention.k_proj"},
                       {".attention.attention.value", ".attention.v_proj"},
                       {".attention.output.dense", ".attention.o_proj"},
                       {".intermediate.dense", ".mlp.fc1"},
                       {".output.dense", ".mlp.fc2"}}});
}

}  // namespace ft::config_families::vit
