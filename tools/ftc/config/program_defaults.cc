#include "tools/ftc/config/program_defaults.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "compiler/optimizer/rules.h"
#include "fmt/format.h"
#include "tools/ftc/config/key_table.h"
#include "tools/ftc/config/layers.h"

namespace ftc {
namespace {

bool Has(const std::vector<Given>& given, std::string_view setting) {
  return std::any_of(given.begin(), given.end(),
                     [&](const Given& g) { return Settings()[g.setting].name == setting; });
}

std::string DefaultOf(std::string_view setting) {
  return Settings()[SettingIndex(setting)].value.show(Configuration());
}

class ProgramDefaults {
 public:
  ProgramDefaults(const FileView& view, const std::vector<Given>& flags, std::vector<Given>& given)
      : view_(view), flags_(flags), given_(given) {}

  std::vector<std::string> Add() {
    Strategy();
    Schedule();
    Optimizer();
    LossScaling();
    Reductions();
    Accumulation();
    if (const YamlEntry* key = DeepSpeedKey()) Absent("gradient_clipping", "clip", "0", *key, "DeepSpeed");
    std::vector<std::string> remarks = std::move(named_);
    for (const auto& [program, taken] : taken_)
      remarks.push_back(
          fmt::format("absent in {}, taken as {} has it: {}", taken.first, program, taken.second));
    NameOptimizer(remarks);
    NameTrainer(remarks);
    return remarks;
  }

 private:
  // Takes `text` for a setting whose key is not in the file; even "auto" is something.
  void Absent(std::string_view key, std::string_view setting, const std::string& text, const YamlEntry& sign,
              const char* program) {
    if (IsThere(key) || Has(given_, setting)) return;
    const Setting& row = Settings()[SettingIndex(setting)];
    Configuration scratch;
    row.value.set(text, scratch);
    const std::string shown = row.value.show(scratch);
    given_.push_back({.setting = SettingIndex(setting),
                      .text = shown,
                      .origin = {.from = Origin::From::kProgram,
                                 .key = fmt::format("{}'s default", program),
                                 .file = sign.file,
                                 .line = sign.key_line}});
    if (Has(flags_, setting) || shown == DefaultOf(setting)) return;
    auto& [file, list] = taken_[program];
    file = sign.file;
    list += fmt::format("{}{}={}", list.empty() ? "" : ", ", setting, shown);
    if (const std::string ours = DefaultOf(setting); !ours.empty()) list += fmt::format(" (ours: {})", ours);
  }

  // Null is what JSON has for nothing.
  bool IsThere(std::string_view key) const {
    const YamlEntry* entry = view_.Find(key);
    return entry != nullptr && entry->text != "null" && (entry->is_list || !entry->text.empty());
  }

  std::string Effective(std::string_view setting) const { return EffectiveText(setting, given_, flags_); }

  // A key by which a file is known as DeepSpeed's; null for any other file. One that has a strategy from
  // elsewhere, or settings under our own names alone, borrows DeepSpeed's spellings.
  const YamlEntry* DeepSpeedKey() const {
    if (view_.distribution() == Distribution::kDeepSpeed) return view_.Find("distributed_type");
    if (view_.distribution() != Distribution::kUnsaid || view_.FirstOf("fsdp.") != nullptr) return nullptr;
    for (const Given& given : given_) {
      const std::string& name = Settings()[given.setting].name;
      const bool is_own = given.origin.key == name && name != "mixed_precision";
      if (name == "strategy" ? is_own : is_own && view_.FirstOf("zero_") == nullptr) return nullptr;
    }
    for (const char* section : {"zero_", "optimizer.", "scheduler."}) {
      if (const YamlEntry* entry = view_.FirstOf(section)) return entry;
    }
    for (const char* key : {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_clipping",
                            "steps_per_print", "wall_clock_breakdown", "communication_data_type",
                            "prescale_gradients", "bf16.enabled", "fp16.enabled"}) {
      if (const YamlEntry* entry = view_.Find(key)) return entry;
    }
    return view_.FirstOf("activation_checkpointing.");
  }

  void Strategy() {
    const YamlEntry* type = view_.Find("distributed_type");
    if (view_.distribution() == Distribution::kFsdp) {
      Absent("fsdp.fsdp_sharding_strategy", "strategy", "full_shard", *type, "Accelerate");
    } else if (const YamlEntry* key = DeepSpeedKey(); key != nullptr && !Has(flags_, "strategy")) {
      // Without a file of DeepSpeed's Accelerate makes its own, with stage 2.
      const bool made = type != nullptr && view_.Find("deepspeed_config_file") == nullptr;
      Absent("zero_optimization.stage", "strategy", made ? "shard_grad_op" : "no_shard", *key,
             made ? "Accelerate" : "DeepSpeed");
    }
  }

  void Schedule() {
    const YamlEntry* type = view_.Find("scheduler.type");
    if (type == nullptr || !Has(given_, "lr_convention")) return;
    Absent("scheduler.params.warmup_type", "warmup_type", "log", *type, "DeepSpeed");
    PreferPeak();
    NamePeak(*type);
    if (!Has(given_, "warmup_ratio") && !Has(flags_, "warmup_ratio"))
      Absent("scheduler.params.warmup_num_steps", "warmup_steps", "1000", *type, "DeepSpeed");
  }

  // The schedules with a warmup_max_lr set it whatever the optimizer's rate.
  void PreferPeak() {
    const auto of = [&](std::string_view key) {
      return std::find_if(given_.begin(), given_.end(), [&](const Given& g) { return g.origin.key == key; });
    };
    const auto peak = of("scheduler.params.warmup_max_lr"), rate = of("optimizer.params.lr");
    if (peak == given_.end() || rate == given_.end() || peak->text == rate->text) return;
    named_.push_back(
        fmt::format("optimizer.params.lr in {} is not used: its schedule rises to warmup_max_lr={}",
                    rate->origin.file, peak->text));
    given_.erase(rate);
  }

  // WarmupDecayLR has a peak of its own.
  void NamePeak(const YamlEntry& type) {
    if (Plain(type.text) != "warmupdecaylr" || view_.Find("scheduler.params.warmup_max_lr") != nullptr)
      return;
    const std::string lr = Effective("lr");
    if (!Has(flags_, "lr") && Has(given_, "lr") && lr != "0.001")
      named_.push_back(
          fmt::format("warmup_max_lr is absent in {}: the rate rises to lr={}; DeepSpeed's would to 0.001",
                      type.file, lr));
    Absent("scheduler.params.warmup_max_lr", "lr", "0.001", type, "DeepSpeed");
  }

  // After Optimizer, whose rate it is a part of.
  void CosineFloor() {
    const YamlEntry* type = view_.Find("scheduler.type");
    if (type == nullptr || Plain(type->text) != "warmupcosinelr") return;
    const double lr = ReadNumber(Effective("lr")).value_or(0);
    Absent("scheduler.params.cos_min_ratio", "min_lr", ShowNumber(1e-4 * lr), *type, "DeepSpeed");
  }

  void Optimizer() {
    const YamlEntry* type = view_.Find("optimizer.type");
    if (IsThere("optimizer.type")) {
      const std::string name = Effective("optimizer");
      const YamlEntry* torch = view_.Find("optimizer.params.torch_adam");
      const bool of_torch = torch != nullptr && ReadBool(torch->text) == true && name == "adamw";
      Absent("optimizer.params.lr", "lr", "0.001", *type, "DeepSpeed");
      const ft::compiler::OptimizerRule& rule = *ft::compiler::findOptimizerRule(name);
      if (rule.has("beta1") && rule.usual.empty())
        Absent("optimizer.params.betas", "betas", "0.9,0.999", *type, "DeepSpeed");
      if (rule.has("eps")) Absent("optimizer.params.eps", "eps", "1e-8", *type, "DeepSpeed");
      Absent("optimizer.params.weight_decay", "weight_decay", of_torch ? "0.01" : "0", *type, "DeepSpeed");
      if (rule.has("momentum")) Absent("optimizer.params.momentum", "momentum", "0", *type, "DeepSpeed");
    }
    CosineFloor();
  }

  void LossScaling() {
    const YamlEntry* key = view_.FirstOf("fp16.");
    if (key == nullptr) key = DeepSpeedKey();
    if (key == nullptr || (Effective("param_dtype") != "fp16" && Effective("reduce_dtype") != "fp16")) return;
    Absent("fp16.initial_scale_power", "initial_scale_power", "16", *key, "DeepSpeed");
    Absent("fp16.loss_scale_window", "loss_scale_window", "1000", *key, "DeepSpeed");
    Absent("fp16.hysteresis", "hysteresis", "2", *key, "DeepSpeed");
    Absent("fp16.min_loss_scale", "min_loss_scale", "1", *key, "DeepSpeed");
  }

  // Without FSDP or DeepSpeed Accelerate computes under autocast: gradients are those of fp32 parameters.
  void Reductions() {
    const bool is_autocast =
        view_.distribution() == Distribution::kNone || view_.distribution() == Distribution::kReplicated;
    if (!is_autocast || !Has(given_, "mixed_precision") || Has(flags_, "mixed_precision")) return;
    Absent("fsdp.fsdp_reduce_dtype", "reduce_dtype", "fp32", *view_.Find("distributed_type"), "Accelerate");
  }

  // DeepSpeed divides the sequences of a step among ranks and micro-steps.
  void Accumulation() {
    const YamlEntry* key = view_.Find("train_batch_size");
    if (key == nullptr || !Has(given_, "global_batch") || IsSaid("micro_steps") || DeepSpeedKey() == nullptr)
      return;
    const bool known = IsSaid("batch") && IsSaid("world_size");
    const double each =
        known ? ReadNumber(Effective("batch")).value_or(0) * ReadNumber(Effective("world_size")).value_or(0)
              : 0;
    const double steps = each > 0 ? ReadNumber(Effective("global_batch")).value_or(0) / each : 0;
    if (steps >= 1 && steps == std::floor(steps)) {
      Absent("gradient_accumulation_steps", "micro_steps", fmt::format("{:.0f}", steps), *key, "DeepSpeed");
    } else if (!IsThere("gradient_accumulation_steps")) {
      named_.push_back(
          fmt::format("gradient_accumulation_steps is absent in {}: micro_steps={}; DeepSpeed's would be "
                      "train_batch_size / (train_micro_batch_size_per_gpu x ranks)",
                      key->file, Effective("micro_steps")));
    }
  }

  bool IsSaid(std::string_view setting) const { return Has(given_, setting) || Has(flags_, setting); }

  std::string Shown(std::initializer_list<const char*> settings) const {
    std::string text;
    for (const char* setting : settings) {
      if (!IsSaid(setting))
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", setting, Effective(setting));
    }
    return text;
  }

  // In files of Accelerate, and of DeepSpeed without an optimizer, the training script makes one.
  void NameOptimizer(std::vector<std::string>& remarks) const {
    const YamlEntry* key = view_.Find("distributed_type");
    if (key == nullptr) key = DeepSpeedKey();
    if (key == nullptr || Has(given_, "optimizer")) return;
    const bool clips = view_.distribution() != Distribution::kDeepSpeed && key->path == "distributed_type";
    std::string ours = Shown({"optimizer", "lr", "betas", "weight_decay"});
    if (clips && !ours.empty() && !IsSaid("clip")) ours += ", clip=" + Effective("clip");
    if (!ours.empty())
      remarks.push_back(
          fmt::format("{} leaves the optimizer to a training script; here it is {}", key->file, ours));
  }

  // Hugging Face's training arguments, where a file has some of those for the optimizer.
  void NameTrainer(std::vector<std::string>& remarks) const {
    const YamlEntry* sign = nullptr;
    for (const char* key : {"adam_beta1", "adam_beta2", "adam_epsilon", "optim", "lr_scheduler_type"}) {
      if (sign == nullptr) sign = view_.Find(key);
    }
    if (sign == nullptr) return;
    std::string text;
    const ft::compiler::OptimizerRule& rule = *ft::compiler::findOptimizerRule(Effective("optimizer"));
    const auto name = [&](const char* setting, const std::string& theirs) {
      std::string ours = Effective(setting);
      for (const auto& [usual, value] : rule.usual)
        if (usual == setting && !IsSaid(setting)) ours = value;
      if (ours != theirs)
        text += fmt::format("{}{}={} (there {})", text.empty() ? "" : ", ", setting, ours, theirs);
    };
    const YamlEntry *first = view_.Find("adam_beta1"), *second = view_.Find("adam_beta2");
    if (rule.has("beta1") && !Has(flags_, "betas") && view_.Find("betas") == nullptr &&
        (first == nullptr || second == nullptr))
      name("betas", fmt::format("{},{}", first ? first->text : "0.9", second ? second->text : "0.999"));
    if (!IsSaid("weight_decay")) name("weight_decay", "0");
    if (!IsSaid("lr")) name("lr", "5e-05");
    if (!IsSaid("lr_schedule")) name("lr_schedule", "linear");
    if (rule.has("scale_parameter")) {
      if (!IsSaid("scale_parameter")) name("scale_parameter", "false");
      if (!IsSaid("eps")) name("eps", "1e-30, added to squares");
    }
    if (!text.empty())
      remarks.push_back(
          fmt::format("absent in {}, and not as Hugging Face's Trainer has it: {}", sign->file, text));
  }

  const FileView& view_;
  const std::vector<Given>& flags_;
  std::vector<Given>& given_;
  std::vector<std::string> named_;
  std::map<std::string, std::pair<std::string, std::string>> taken_;  // by program: the file, what of it
};

}  // namespace

void AddProgramDefaults(const FileView& view, const std::vector<Given>& flags, std::vector<Given>& given,
                        std::vector<std::string>& remarks) {
  for (std::string& remark : ProgramDefaults(view, flags, given).Add()) remarks.push_back(std::move(remark));
}

}  // namespace ftc
