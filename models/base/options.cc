#include "models/base/options.h"

#include <algorithm>

#include "models/base/model_spec.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

namespace ft::models {
namespace {

// The product of any three extents stays far inside 64 bits.
constexpr double kExtents = (1 << 20) + 1;

constexpr ModelOption whole(const char *name, int64_t ModelConfig::*member, const char *help,
                            double below = kExtents) {
  return {name, member, 1, below, "", "N", help};
}

constexpr ModelOption real(const char *name, double ModelConfig::*member, double below, const char *help) {
  return {name, member, 0, below, "", "X", help};
}

constexpr ModelOption kOptions[] = {
    whole("batch", &ModelConfig::batch, "Sequences, or other examples, per rank and step"),
    whole("seq", &ModelConfig::seq, "Tokens of each sequence"),
    whole("layers", &ModelConfig::num_layers, "Blocks", 4097),
    whole("hidden", &ModelConfig::hidden_size, "Width of the residual stream"),
    whole("heads", &ModelConfig::num_heads, "Attention heads"),
    whole("kv-heads", &ModelConfig::num_kv_heads, "Heads of keys and values"),
    whole("head-size", &ModelConfig::head_size, "Width of a head, where it is not hidden / heads"),
    whole("ffn", &ModelConfig::intermediate_size, "Width of the MLP, or of each expert"),
    whole("vocab", &ModelConfig::vocab_size, "Vocabulary"),
    whole("context", &ModelConfig::max_positions, "Longest sequence"),
    whole("window", &ModelConfig::sliding_window, "Positions that layers with a sliding window see"),
    whole("experts", &ModelConfig::num_experts, "Experts of each layer", 4097),
    whole("active-experts", &ModelConfig::experts_per_token, "Experts of each token", 4097),
    {"packed", &ModelConfig::packed, 0, 0, "", "",
     "Sequences are packed documents, of which none sees another: inputs segments, and positions where they "
     "are "
     "learned"},
    {"routing", &ModelConfig::routing, 0, 0, "dense|grouped", "dense|grouped",
     "Whether every expert computes all tokens, or only its own"},
    whole("labels", &ModelConfig::num_labels, "Classes"),
    whole("image", &ModelConfig::image_size, "Pixels of a side of a picture", 65537),
    whole("patch", &ModelConfig::patch_size, "Pixels of a side of a patch", 65537),
    real("dropout", &ModelConfig::residual_dropout, 1,
         "Probability of dropout after the embedding, before each addition to the residual stream and, in "
         "gpt2 and "
         "bert, of attention's probabilities; evaluation has none"),
    whole("latent-bits", &ModelConfig::latent_bits,
          "Bits of the latent variable, whose table has 2^bits rows", 25),
    real("beta", &ModelConfig::beta, 1e30, "Weight of the KL term"),
    real("kappa", &ModelConfig::kappa, 1e30, "Nats of KL that are free"),
};

bool hasOption(const Overrides &overrides, const char *name) { return overrides.count(name) > 0; }

std::string text(const char *name, double value) {
  std::string number;
  llvm::raw_string_ostream(number) << llvm::format("%g", value);
  return llvm::formatv("--{0}={1}", name, number);
}

std::string text(const char *name, int64_t value) { return llvm::formatv("--{0}={1}", name, value); }

// One line, or empty.
std::string check(const ModelOption &option, const ModelConfig &config) {
  if (const auto *member = std::get_if<int64_t ModelConfig::*>(&option.member)) {
    int64_t value = config.**member, most = static_cast<int64_t>(option.below) - 1;
    if (value >= static_cast<int64_t>(option.least) && value <= most)
      return "";
    return llvm::formatv("{0} is out of range; expected {1} to {2}", text(option.name, value),
                         static_cast<int64_t>(option.least), most);
  }
  if (const auto *member = std::get_if<double ModelConfig::*>(&option.member)) {
    double value = config.**member;
    if (value >= option.least && value < option.below)
      return "";
    return llvm::formatv("{0} is out of range; expected a number, 0 or more{1}", text(option.name, value),
                         option.below == 1 ? " and below 1" : "");
  }
  if (std::holds_alternative<bool ModelConfig::*>(option.member))
    return "";
  const std::string &value = config.*std::get<std::string ModelConfig::*>(option.member);
  if (llvm::is_contained(llvm::split(option.allowed, '|'), llvm::StringRef(value)))
    return "";
  return llvm::formatv("--{0}={1} is not known; expected {2}", option.name, value, option.allowed);
}

void set(const ModelOption &option, const OptionValue &value, ModelConfig &config) {
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(config.*member)>;
        config.*member = std::get<Value>(value);
      },
      option.member);
}

// kv heads, size of a head, seq, all rates of dropout: follow what they depend on unless they are given.
void setDependent(const ModelSpec &spec, const Overrides &overrides, const ModelConfig &preset,
                  ModelConfig &config) {
  if (!hasOption(overrides, "kv-heads") && preset.num_kv_heads == preset.num_heads)
    config.num_kv_heads = config.num_heads;
  if (!hasOption(overrides, "seq") && takesOption(spec, "seq"))
    config.seq = std::min(preset.seq, config.max_positions);
  config.embedding_dropout = config.residual_dropout;
  if (spec.attentionDropout)
    config.attention_dropout = config.residual_dropout;
}

int64_t positionsOf(const ModelSpec &spec, const ModelConfig &config) {
  return spec.positions ? spec.positions(config) : config.max_positions;
}

std::string checkFit(const ModelConfig &config) {
  if (config.head_size == 0 && config.hidden_size % config.num_heads != 0)
    return text("hidden", config.hidden_size) + " is not divisible by " + text("heads", config.num_heads);
  if (config.num_heads % config.num_kv_heads != 0)
    return text("heads", config.num_heads) + " is not divisible by " + text("kv-heads", config.num_kv_heads);
  if (config.seq > config.max_positions)
    return text("seq", config.seq) + " is longer than " + text("context", config.max_positions);
  return "";
}

} // namespace

const std::vector<ModelOption> &modelOptions() {
  static const std::vector<ModelOption> options(std::begin(kOptions), std::end(kOptions));
  return options;
}

bool changesNoFact(const ModelOption &option) {
  return llvm::is_contained({"batch", "seq", "packed", "dropout", "routing"}, llvm::StringRef(option.name));
}

bool takesOption(const ModelSpec &spec, const std::string &name) {
  return name == "batch" || llvm::is_contained(spec.options, name);
}

std::string applyShapes(const ModelSpec &spec, const Overrides &overrides, ModelConfig &config) {
  config.batch = 1;
  if (takesOption(spec, "seq"))
    config.seq = std::min(positionsOf(spec, config), kDefaultSeq);
  double *rates[] = {&config.embedding_dropout, &config.residual_dropout, &config.attention_dropout};
  const double before[] = {*rates[0], *rates[1], *rates[2]};
  for (const ModelOption &option : kOptions) {
    auto given = overrides.find(option.name);
    if (given == overrides.end())
      continue;
    set(option, given->second, config);
    if (std::string error = check(option, config); !error.empty())
      return error;
  }
  if (double rate = config.residual_dropout; hasOption(overrides, "dropout"))
    for (int i = 0; i < 3; ++i)
      *rates[i] = before[i] == 0 ? 0 : rate;
  if (config.positions == "learned" && takesOption(spec, "seq") && config.seq > positionsOf(spec, config))
    return text("seq", config.seq) + " is longer than the model's " +
           std::to_string(positionsOf(spec, config)) + " positions";
  return spec.check ? spec.check(config) : "";
}

std::string applyOverrides(const ModelSpec &spec, const Overrides &overrides, ModelConfig &config) {
  const ModelConfig preset = config;
  for (const ModelOption &option : kOptions)
    if (auto given = overrides.find(option.name); given != overrides.end())
      set(option, given->second, config);
  setDependent(spec, overrides, preset, config);
  for (const ModelOption &option : kOptions)
    if (takesOption(spec, option.name))
      if (std::string error = check(option, config); !error.empty())
        return error;
  if (std::string error = checkFit(config); !error.empty())
    return error;
  if (config.head_size == 0)
    config.head_size = config.hidden_size / config.num_heads;
  if (spec.complete)
    spec.complete(config);
  return spec.check ? spec.check(config) : "";
}

} // namespace ft::models
