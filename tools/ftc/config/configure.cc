#include "tools/ftc/config/configure.h"

#include <type_traits>

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
  const RunSettings usual;
  [[maybe_unused]] constexpr bool kAlways = true, kUnlessUsual = false;
  const auto keep = [&](const char* name, const auto& value) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
      options.runNumbers.emplace_back(name, static_cast<double>(value));
    else
      options.runTexts.emplace_back(name, value);
  };
#define FT_RUN FT_PLANNED
#define FT_PLANNED(TYPE, NAME, DEFAULT, KEEP, ...) \
  if (KEEP || run.NAME != usual.NAME) keep(#NAME, run.NAME);
#include "runtime/base/settings.def"
  return options;
}

std::variant<Given, std::string> GivenByFlag(size_t setting, std::string_view text) {
  const Setting& row = Settings()[setting];
  const std::string flag = "--" + ft::SettingFlag(row.name);
  Configuration scratch;
  const std::string mistake = row.value.set(text, scratch);
  if (!mistake.empty()) return fmt::format("{}: {}", flag, mistake);
  return Given{.setting = setting,
               .text = row.value.show(scratch),
               .origin = {.from = Origin::From::kFlag, .key = flag, .file = {}, .line = 0}};
}

absl::Status SetFlag(std::string_view name, const std::string& text, std::vector<Given>& flags) {
  const size_t setting = SettingIndex(name);
  std::erase_if(flags, [&](const Given& given) { return given.setting == setting; });
  std::variant<Given, std::string> given = GivenByFlag(setting, text);
  if (const auto* mistake = std::get_if<std::string>(&given)) return absl::InvalidArgumentError(*mistake);
  flags.push_back(std::get<Given>(std::move(given)));
  return absl::OkStatus();
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
  FT_ASSIGN_OR_RETURN(configuration.options.target, TargetNamed(configuration.target));
  return resolved;
}

absl::Status CheckGlobalBatch(const Effective& effective, int64_t batch) {
  const int64_t global = effective.configuration.run.global_batch;
  const int64_t micro_steps = effective.configuration.options.microSteps;
  if (batch <= 0 || global % (batch * micro_steps) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} wants {} sequences a step, which is no multiple of the model's batch of {} in {} micro-step{}",
      NameOf(effective.OriginOf("global_batch")), global, batch, micro_steps, micro_steps == 1 ? "" : "s"));
}

}  // namespace ftc
