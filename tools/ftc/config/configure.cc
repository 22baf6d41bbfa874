#include "tools/ftc/config/configure.h"

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/config/config_files.h"
#include "tools/ftc/config/file_layer.h"
#include "tools/ftc/config/settings.h"
#include "tools/ftc/config/target_file.h"

namespace ftc {

ft::compiler::CompileOptions CompileOptionsOf(const Configuration& configuration) {
  ft::compiler::CompileOptions options = configuration.options;
  const RunSettings& run = configuration.run;
  options.runNumbers = {{"lr", run.lr},
                        {"warmup_steps", static_cast<double>(run.warmup_steps)},
                        {"warmup_ratio", run.warmup_ratio},
                        {"min_lr", run.min_lr},
                        {"seed", static_cast<double>(run.seed)},
                        {"max_bad_steps", static_cast<double>(run.max_bad_steps)}};
  if (run.steps > 0) options.runNumbers.emplace_back("steps", static_cast<double>(run.steps));
  options.runTexts = {{"lr_schedule", run.lr_schedule}, {"state_dict_type", run.state_dict_type}};
  if (configuration.global_batch > 0)
    options.runNumbers.emplace_back("global_batch", static_cast<double>(configuration.global_batch));
  const RunSettings usual;
  if (run.warmup_min_lr != usual.warmup_min_lr)
    options.runNumbers.emplace_back("warmup_min_lr", run.warmup_min_lr);
  if (run.warmup_type != usual.warmup_type) options.runTexts.emplace_back("warmup_type", run.warmup_type);
  if (run.lr_convention != usual.lr_convention)
    options.runTexts.emplace_back("lr_convention", run.lr_convention);
  return options;
}

std::variant<Given, std::string> GivenByFlag(size_t setting, std::string_view text) {
  const Setting& row = Settings()[setting];
  const std::string flag = "--" + FlagName(row.name);
  Configuration scratch;
  const std::string mistake = row.value.set(text, scratch);
  if (!mistake.empty()) return fmt::format("{}: {}", flag, mistake);
  return Given{.setting = setting,
               .text = row.value.show(scratch),
               .origin = {.from = Origin::From::kFlag, .key = flag, .file = {}, .line = 0}};
}

absl::StatusOr<ft::Target> TargetNamed(const std::string& text) {
  if (IsTargetFile(text)) return ReadTarget(text);
  if (const ft::Target* shipped = ft::FindTarget(text)) return *shipped;
  return absl::InvalidArgumentError(fmt::format("unknown target '{}'", text));
}

absl::StatusOr<std::variant<Effective, Refusal>> Configure(const std::string& path,
                                                           const std::vector<Given>& flags) {
  FileLayer layer;
  if (!path.empty()) {
    FT_ASSIGN_OR_RETURN(const TrainYaml file, ReadConfigFiles(path));
    FT_ASSIGN_OR_RETURN(layer, ReadFileLayer(file, flags));
  }
  std::variant<Effective, Refusal> resolved = Resolve(layer.given, flags);
  auto* effective = std::get_if<Effective>(&resolved);
  if (effective == nullptr) return resolved;
  effective->remarks.insert(effective->remarks.begin(), layer.remarks.begin(), layer.remarks.end());
  Configuration& configuration = effective->configuration;
  FT_ASSIGN_OR_RETURN(configuration.options.overlap.target, TargetNamed(configuration.target));
  return resolved;
}

}  // namespace ftc
