#include "tools/ftc/config/consistency.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "compiler/optimizer/rules.h"
#include "compiler/shard/strategy.h"
#include "fmt/format.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

// Two ways to say one thing.
constexpr std::pair<std::string_view, std::string_view> kAlternatives[] = {{"warmup_steps", "warmup_ratio"},
                                                                           {"world_size", "mesh"}};

std::string ShownIn(const Configuration& configuration, std::string_view setting) {
  return Settings()[SettingIndex(setting)].value.show(configuration);
}

// The flag is what the user has just written.
bool BlamesFlag(const Origin& a, const Origin& b) {
  return a.from == Origin::From::kFlag || b.from == Origin::From::kFlag;
}

Refusal Contradiction(const Effective& effective, std::string_view first, std::string_view second,
                      const std::string& why) {
  const Origin &a = effective.OriginOf(first), &b = effective.OriginOf(second);
  if (b.from == Origin::From::kDefault) return {fmt::format("{}: {}", NameOf(a), why), BlamesFlag(a, b)};
  return {fmt::format("{} and {} contradict each other: {}", NameOf(a), NameOf(b), why), BlamesFlag(a, b)};
}

std::optional<Refusal> CheckStrategy(Effective& effective) {
  if (!effective.configuration.options.strategy.empty()) return std::nullopt;
  return Refusal{
      fmt::format("--strategy is missing; one of: {}", JoinWords(ft::compiler::strategyNames(), ", ")), true};
}

std::optional<Refusal> CheckMesh(Effective& effective) {
  ft::compiler::CompileOptions& options = effective.configuration.options;
  if (!options.mesh) return std::nullopt;
  const int ranks = options.mesh->first * options.mesh->second;
  if (effective.IsGiven("world_size") && ranks != options.worldSize)
    return Contradiction(effective, "mesh", "world_size",
                         fmt::format("{} ranks and {}", ranks, options.worldSize));
  if (effective.IsGiven("world_size")) return std::nullopt;
  options.worldSize = ranks;
  effective.origins[SettingIndex("world_size")] = effective.OriginOf("mesh");
  return std::nullopt;
}

std::optional<Refusal> CheckWarmup(Effective& effective) {
  const RunSettings& run = effective.configuration.run;
  if (run.warmup_steps == 0 || run.warmup_ratio == 0) return std::nullopt;
  return Contradiction(effective, "warmup_steps", "warmup_ratio", "give one of them");
}

bool HasHyperparameter(const Configuration& c, std::string_view name) {
  return ft::compiler::findOptimizerRule(c.options.optimizer)->has(name);
}

std::optional<Refusal> CheckMomentum(Effective& effective) {
  const ft::compiler::CompileOptions& options = effective.configuration.options;
  if (!HasHyperparameter(effective.configuration, "nesterov") || !options.nesterov || options.momentum > 0)
    return std::nullopt;
  return Contradiction(effective, "nesterov", "momentum", "nesterov wants a momentum above 0");
}

std::optional<Refusal> CheckMasterWeights(Effective& effective) {
  const ft::compiler::CompileOptions& options = effective.configuration.options;
  const std::string& dtype = options.paramDtype;
  if (!options.masterWeights && dtype != "bf16") {
    return Contradiction(effective, "master_weights", "param_dtype",
                         dtype == "fp32" ? "fp32 weights are their own master; off wants param_dtype: bf16"
                                         : "fp16 weights want fp32 masters; off wants param_dtype: bf16");
  }
  if (!options.stochasticRounding || !options.masterWeights) return std::nullopt;
  return Contradiction(effective, "stochastic_rounding", "master_weights",
                       "stochastic rounding wants bf16 weights without fp32 masters: param_dtype: bf16 and "
                       "master_weights: off");
}

std::optional<Refusal> CheckFp8Recipe(Effective& effective) {
  const ft::compiler::CompileOptions& options = effective.configuration.options;
  if (options.fp8Recipe == "none" || options.paramDtype == "bf16") return std::nullopt;
  return Contradiction(effective, "fp8_recipe", "param_dtype",
                       "products in fp8 are of bf16: fp8_recipe wants param_dtype: bf16");
}

// Sums over micro-steps of what is made in other bits would lose them one by one, or have bits to spare.
std::optional<Refusal> CheckAccumulateDtype(Effective& effective) {
  const ft::compiler::CompileOptions& options = effective.configuration.options;
  const std::string& dtype = options.accumulateDtype;
  if (options.evaluate || dtype == "fp32" || dtype == options.paramDtype) return std::nullopt;
  return Contradiction(effective, "accumulate_dtype", "param_dtype",
                       fmt::format("gradients of {} are added up in fp32{}", options.paramDtype,
                                   options.paramDtype == "fp32" ? "" : " or in " + options.paramDtype));
}

std::optional<Refusal> CheckLr(Effective& effective) {
  const RunSettings& run = effective.configuration.run;
  for (const auto& [setting, lr] :
       {std::pair("min_lr", run.min_lr), std::pair("warmup_min_lr", run.warmup_min_lr)}) {
    if (lr > run.lr)
      return Contradiction(
          effective, setting, "lr",
          fmt::format("{} = {} is above lr = {}", setting, ShowNumber(lr), ShowNumber(run.lr)));
  }
  return std::nullopt;
}

// Settings that nothing reads when `inert` holds.
struct Inert {
  std::vector<std::string_view> settings;
  bool (*inert)(const Configuration& configuration);
  std::string_view because;  // the setting that makes them so
};

// Where nothing is trained.
const std::vector<std::string_view> kOfTraining = {"frozen",
                                                   "bucket_cap_mb",
                                                   "reduce_bucket_mb",
                                                   "master_weights",
                                                   "loss_scale",
                                                   "remat",
                                                   "optimizer",
                                                   "betas",
                                                   "eps",
                                                   "weight_decay",
                                                   "momentum",
                                                   "nesterov",
                                                   "beta2_decay",
                                                   "eps2",
                                                   "clip_threshold",
                                                   "scale_parameter",
                                                   "adamw_params",
                                                   "stochastic_rounding",
                                                   "clip",
                                                   "micro_steps",
                                                   "accumulate",
                                                   "accumulate_dtype",
                                                   "global_batch",
                                                   "lr",
                                                   "lr_schedule",
                                                   "min_lr",
                                                   "warmup_steps",
                                                   "warmup_ratio",
                                                   "steps",
                                                   "max_bad_steps"};

const std::vector<Inert>& InertTable() {
  using C = Configuration;
  static const auto* const kTable = new std::vector<Inert>{
      {kOfTraining, [](const C& c) { return c.options.evaluate; }, "evaluate"},
      {{"momentum", "nesterov"}, [](const C& c) { return !HasHyperparameter(c, "momentum"); }, "optimizer"},
      {{"betas"}, [](const C& c) { return !HasHyperparameter(c, "beta1"); }, "optimizer"},
      {{"eps"}, [](const C& c) { return !HasHyperparameter(c, "eps"); }, "optimizer"},
      {{"beta2_decay", "clip_threshold", "scale_parameter"},
       [](const C& c) { return !HasHyperparameter(c, "beta2_decay"); },
       "optimizer"},
      {{"eps2"}, [](const C& c) { return !HasHyperparameter(c, "eps2"); }, "optimizer"},
      {{"eps2"}, [](const C& c) { return !c.options.scaleParameter; }, "scale_parameter"},
      {{"adamw_params"},
       [](const C& c) { return ft::compiler::findOptimizerRule(c.options.optimizer)->others.empty(); },
       "optimizer"},
      {{"min_num_params"}, [](const C& c) { return c.options.wrap != "size"; }, "wrap"},
      {{"loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale"},
       [](const C& c) { return !c.options.scalesLoss(); },
       "param_dtype"},
      {{"initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale"},
       [](const C& c) { return c.options.scalesLoss() && c.options.lossScale != 0; },
       "loss_scale"},
      {{"accumulate", "accumulate_dtype"},
       [](const C& c) { return c.options.microSteps == 1; },
       "micro_steps"},
      {{"min_lr"}, [](const C& c) { return c.run.lr_schedule == "constant"; }, "lr_schedule"},
      {{"warmup_type", "warmup_min_lr"},
       [](const C& c) { return c.run.warmup_steps == 0 && c.run.warmup_ratio == 0; },
       "warmup_steps"},
  };
  return *kTable;
}

// Given, and not only repeating the default under its own name as the output of --print-config does.
bool WasAsked(const Effective& effective, std::string_view setting) {
  const Origin& origin = effective.OriginOf(setting);
  if (origin.from != Origin::From::kFile && origin.from != Origin::From::kFlag) return false;
  return origin.key != setting ||
         ShownIn(effective.configuration, setting) != ShownIn(Configuration(), setting);
}

void Remark(const Effective& effective, const std::vector<std::string_view>& settings,
            const std::string& reason, std::vector<std::string>& lines) {
  std::vector<std::string> names;
  for (std::string_view setting : settings) {
    if (WasAsked(effective, setting)) names.push_back(NameOf(effective.OriginOf(setting)));
  }
  if (names.empty()) return;
  lines.push_back(
      fmt::format("{} {} no effect: {}", JoinWords(names, ", "), names.size() == 1 ? "has" : "have", reason));
}

}  // namespace

void LetFlagsReplace(const std::vector<std::optional<Given>>& flags, Effective& effective) {
  const auto forget = [&](size_t setting) {
    const Setting& row = Settings()[setting];
    row.value.set(row.value.show(Configuration()), effective.configuration);
    effective.origins[setting] = Origin();
  };
  for (const auto& [first, second] : kAlternatives) {
    const size_t a = SettingIndex(first), b = SettingIndex(second);
    if (flags[a] && !flags[b]) forget(b);
    if (flags[b] && !flags[a]) forget(a);
  }
}

std::optional<Refusal> CheckConsistency(Effective& effective) {
  for (const auto check : {CheckStrategy, CheckMesh, CheckWarmup, CheckMomentum, CheckFp8Recipe,
                           CheckMasterWeights, CheckAccumulateDtype, CheckLr}) {
    if (std::optional<Refusal> refusal = check(effective)) return refusal;
  }
  return std::nullopt;
}

void AddRemarks(Effective& effective) {
  const Configuration& c = effective.configuration;
  for (const Inert& row : InertTable()) {
    // The first row says it of all settings of training.
    const auto is_said = [&](std::string_view setting) {
      return c.options.evaluate && row.because != "evaluate" &&
             std::find(kOfTraining.begin(), kOfTraining.end(), setting) != kOfTraining.end();
    };
    std::vector<std::string_view> settings = row.settings;
    std::erase_if(settings, is_said);
    if (row.inert(c))
      Remark(effective, settings, fmt::format("{} is {}", row.because, ShownIn(c, row.because)),
             effective.unread);
  }
  for (const Setting& setting : Settings()) {
    if (!setting.no_effect.empty()) Remark(effective, {setting.name}, setting.no_effect, effective.remarks);
  }
}

}  // namespace ftc
