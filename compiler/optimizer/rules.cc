#include "compiler/optimizer/rules.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"

namespace ft::compiler {
namespace {

constexpr Hyperparameter kBeta1 = {.name = "beta1", .below = 1}, kBeta2 = {.name = "beta2", .below = 1};
constexpr Hyperparameter kWeightDecay = {.name = "weight_decay"};

// Above 0 in f32, and so is what a rule makes of it: a weight whose gradient has always been 0 would become
// NaN, and so would padding.
constexpr Hyperparameter kEps = {.name = "eps", .low = 1.2e-38};
constexpr Hyperparameter kSquaredEps = {.name = "eps", .low = 1.1e-19, .below = 1e19};

// In the order of torch.optim.AdamW and torch.optim.Adam.
absl::StatusOr<Update> adamw(const Hyperparameters &) {
  return Update{{{"exp_avg"}, {"exp_avg_sq"}}, R"(
    exp_avg = exp_avg + (gradient - exp_avg) * [1 - beta1];
    exp_avg_sq = exp_avg_sq * [beta2] + gradient * gradient * [1 - beta2];
    denominator = sqrt(exp_avg_sq) / [sqrt(1 - beta2^t)] + [eps];
    parameter = parameter * [1 - lr * weight_decay] - [lr / (1 - beta1^t)] * (exp_avg / denominator))"};
}

absl::StatusOr<Update> adam(const Hyperparameters &) {
  return Update{{{"exp_avg"}, {"exp_avg_sq"}}, R"(
    g = gradient + [weight_decay] * parameter;
    exp_avg = exp_avg + (g - exp_avg) * [1 - beta1];
    exp_avg_sq = exp_avg_sq * [beta2] + g * g * [1 - beta2];
    denominator = sqrt(exp_avg_sq) / [sqrt(1 - beta2^t)] + [eps];
    parameter = parameter - [lr / (1 - beta1^t)] * (exp_avg / denominator))"};
}

// In the order of torch.optim.SGD with dampening 0; its first momentum is the gradient, as that of 0 is.
absl::StatusOr<Update> sgd(const Hyperparameters &h) {
  if (h.at("momentum") == 0 && h.at("nesterov") != 0)
    return absl::InvalidArgumentError("nesterov wants a momentum above 0");
  if (h.at("momentum") == 0)
    return Update{{}, R"(
    g = gradient + [weight_decay] * parameter;
    parameter = parameter - [lr] * g)"};
  if (h.at("nesterov") == 0)
    return Update{{{"momentum"}}, R"(
    momentum = [momentum] * momentum + (gradient + [weight_decay] * parameter);
    parameter = parameter - [lr] * momentum)"};
  return Update{{{"momentum"}}, R"(
    g = gradient + [weight_decay] * parameter;
    momentum = [momentum] * momentum + g;
    parameter = parameter - [lr] * (g + [momentum] * momentum))"};
}

absl::StatusOr<Update> lion(const Hyperparameters &) {
  return Update{{{"exp_avg"}}, R"(
    direction = sign(exp_avg * [beta1] + gradient * [1 - beta1]);
    exp_avg = exp_avg * [beta2] + gradient * [1 - beta2];
    parameter = parameter * [1 - lr * weight_decay] - [lr] * direction)"};
}

// As torch.optim.Muon; the lerps in the order of what they are there.
absl::StatusOr<Update> muon(const Hyperparameters &h) {
  return Update{.states = {{"momentum_buffer"}},
                .formulas = "parameter = parameter * [1 - lr * weight_decay] - [lr] * direction",
                .direction = h.at("nesterov") == 0 ? R"(
    momentum_buffer = momentum_buffer + (gradient - momentum_buffer) * [1 - momentum];
    direction = momentum_buffer)"
                                                   : R"(
    momentum_buffer = momentum_buffer + (gradient - momentum_buffer) * [1 - momentum];
    direction = gradient + (momentum_buffer - gradient) * [momentum])",
                .matrices = "direction = orthogonalized(direction)"};
}

// As torch.optim.Adafactor.
absl::StatusOr<Update> adafactor(const Hyperparameters &h) {
  Update update = {.states = {{"row_var", StateLayoutKind::kRows},
                              {"col_var", StateLayoutKind::kColumns},
                              {"variance", StateLayoutKind::kVectors}},
                   .formulas =
                       "parameter = parameter * [1 - lr * weight_decay] - [min(lr, 1 / sqrt(t))] * direction",
                   .direction = "direction = gradient"};
  const std::string limited = R"(
    limit = maximum(root_mean_square(step) / [clip_threshold], 1);
    direction = step )" + std::string(h.at("scale_parameter") == 0
                                          ? "/ limit"
                                          : "* (maximum(root_mean_square(parameter), [eps2]) / limit)");
  update.matrices = R"(
    row_var = row_var + (row_means(direction * direction) - row_var) * [t^beta2_decay];
    col_var = col_var + (column_means(direction * direction) - col_var) * [t^beta2_decay];
    estimate = row_var / maximum(column_means(row_var), [eps]) * col_var;
    step = direction * rsqrt(maximum(estimate, [eps * eps]));)" +
                    limited;
  update.vectors = R"(
    variance = variance + (direction * direction - variance) * [t^beta2_decay];
    step = direction * rsqrt(maximum(variance, [eps * eps]));)" +
                   limited;
  return update;
}

} // namespace

const std::vector<OptimizerRule> &optimizerRules() {
  static const auto *const rules = new std::vector<OptimizerRule>{
      {"adamw",
       "Adam with decoupled weight decay (I. Loshchilov, F. Hutter, \"Decoupled weight decay "
       "regularization\", 2019)",
       adamw,
       {kBeta1, kBeta2, kEps, kWeightDecay}},
      {"adam",
       "Adam, with weight decay as part of the gradient (D. Kingma, J. Ba, \"Adam: a method for stochastic "
       "optimization\", 2015)",
       adam,
       {kBeta1, kBeta2, kEps, kWeightDecay}},
      {"sgd",
       "Stochastic gradient descent, with momentum where that is not 0; weight decay is part of the gradient",
       sgd,
       {{.name = "momentum", .below = 1}, {.name = "nesterov"}, kWeightDecay}},
      {"lion",
       "The sign of a momentum, with decoupled weight decay (X. Chen et al., \"Symbolic discovery of "
       "optimization "
       "algorithms\", 2023)",
       lion,
       {kBeta1, kBeta2, kWeightDecay},
       {{"betas", "0.9,0.99"}}},
      {"muon",
       "A momentum with orthogonal matrices in its place, for hidden matrices; adamw updates all other "
       "parameters "
       "(K. Jordan et al., \"Muon: an optimizer for hidden layers in neural networks\", 2024; its rate is "
       "that of "
       "adamw by J. Liu et al., \"Muon is scalable for LLM training\", 2025)",
       muon,
       {{.name = "momentum", .below = 1}, {.name = "nesterov"}, kBeta1, kBeta2, kEps, kWeightDecay},
       {{"momentum", "0.95"}, {"nesterov", "on"}},
       "adamw"},
      {"adafactor",
       "Second moments of the rows and columns of matrices in the place of those of elements, and rates "
       "relative to the size of a parameter (N. Shazeer, M. Stern, \"Adafactor: adaptive learning rates with "
       "sublinear memory cost\", 2018)",
       adafactor,
       {{.name = "beta2_decay", .low = -100, .below = 0},
        kSquaredEps,
        {.name = "eps2"},
        {.name = "clip_threshold", .low = 1},
        {.name = "scale_parameter"},
        kWeightDecay},
       {{"eps", "1.1920928955078125e-07"}, {"weight_decay", "0"}}},
  };
  return *rules;
}

const OptimizerRule *findOptimizerRule(std::string_view name) {
  const auto &rules = optimizerRules();
  auto found =
      std::find_if(rules.begin(), rules.end(), [&](const OptimizerRule &rule) { return rule.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

std::string optimizerNames() {
  std::string names;
  for (const OptimizerRule &rule : optimizerRules())
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
  return names;
}

bool OptimizerRule::has(std::string_view hyperparameter) const {
  return std::any_of(hyperparameters.begin(), hyperparameters.end(),
                     [&](const Hyperparameter &h) { return h.name == hyperparameter; });
}

Hyperparameters hyperparametersOf(const HyperparameterSettings &settings) {
  return {{"beta1", settings.beta1},
          {"beta2", settings.beta2},
          {"eps", settings.eps},
          {"weight_decay", settings.weightDecay},
          {"momentum", settings.momentum},
          {"nesterov", settings.nesterov ? 1.0 : 0.0},
          {"beta2_decay", settings.beta2Decay},
          {"eps2", settings.eps2},
          {"clip_threshold", settings.clipThreshold},
          {"scale_parameter", settings.scaleParameter ? 1.0 : 0.0}};
}

absl::Status checkHyperparameters(const OptimizerRule &rule, const Hyperparameters &all) {
  for (const Hyperparameter &h : rule.hyperparameters) {
    double value = all.find(h.name)->second;
    if (!std::isfinite(static_cast<float>(value)))
      return absl::InvalidArgumentError(fmt::format("{} is {}, which f32 does not hold", h.name, value));
    if ((h.aboveLow ? value > h.low : value >= h.low) && value < h.below)
      continue;
    std::string expected = h.aboveLow ? fmt::format("above {}", h.low) : fmt::format("{} or more", h.low);
    if (h.below < std::numeric_limits<double>::infinity())
      expected += fmt::format(", below {}", h.below);
    return absl::InvalidArgumentError(
        fmt::format("{} is {}; {} wants {}", h.name, value, rule.name, expected));
  }
  return absl::OkStatus();
}

} // namespace ft::compiler
