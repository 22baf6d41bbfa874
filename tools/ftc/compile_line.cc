#include "tools/ftc/compile_line.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "fmt/format.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

constexpr std::string_view kFinalStage = "memory";
constexpr std::string_view kFlagAlone = "true";  // what CLI11 makes of a flag without a value
constexpr char kInput[] = "Input and output";

}  // namespace

void CompileLine::AddTo(CLI::App& app) {
  CLI::App& sub = *app.add_subcommand("compile", "Compiles a model into a plan");
  sub.add_option("model", command_.model, "The model")->type_name("model.mlir");
  sub.add_flag("--print-config", command_.print_config,
               "Prints all settings as a train.yaml and compiles nothing")
      ->group(kInput);
  sub.add_option("-o,--output", command_.output,
                 "Plan to write; plan.bin by default, none when something is dumped")
      ->type_name("plan.bin")
      ->group(kInput);
  // A flag, so that it takes a value only after '='.
  sub.add_flag("--dump", dump_,
               "Prints the IR after STAGE[:@FUNCTION][:LAYER][,...]; the final one by default")
      ->option_text("[=STAGE,...]")
      ->group(kInput);
  sub.add_option("--dump-dir", command_.dump_dir, "Writes the IR after each stage to this folder")
      ->type_name("DIR")
      ->group(kInput);
  AddSettingsTo(sub);
}

void CompileLine::AddSettingsTo(CLI::App& sub) {
  sub.add_option("--config", command_.config,
                 "Settings in a file; flags override it. docs/train-yaml.md has all keys")
      ->type_name("train.yaml")
      ->group(kInput);
  settings_.resize(Settings().size());
  options_.resize(Settings().size());
  for (size_t i = 0; i < settings_.size(); ++i) {
    const Setting& setting = Settings()[i];
    const std::string flag = "--" + ft::SettingFlag(setting.name);
    if (sub.get_option_no_throw(flag) != nullptr) continue;
    const std::string help = fmt::format("{} ({})", setting.help, setting.value.type);
    CLI::Option* option = setting.is_switch
                              ? sub.add_flag(flag, settings_[i], help)->option_text("[=on|off]")
                              : sub.add_option(flag, settings_[i], help)->type_name(setting.placeholder);
    options_[i] = option;
    // Counted and refused by Read, in words of its own.
    option->group(setting.group)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const std::string usual = setting.value.show(Configuration());
    if (usual != "none") option->default_str(usual);
  }
}

std::string CompileLine::Read(const CLI::App& sub, CompileCommand& command) const {
  if (command_.model.empty() && !command_.print_config) return "model is required";
  if (std::string mistake = ReadSettings(command); !mistake.empty()) return mistake;
  if (std::string mistake = ReadDump(sub, command); !mistake.empty()) return mistake;
  if (command.output.empty() && command.dump.empty() && command.dump_dir.empty()) command.output = "plan.bin";
  return "";
}

std::string CompileLine::ReadSettings(CompileCommand& command) const {
  command = command_;
  for (size_t i = 0; i < settings_.size(); ++i) {
    const std::string flag = "--" + ft::SettingFlag(Settings()[i].name);
    const size_t count = options_[i] == nullptr ? 0 : options_[i]->count();
    if (count == 0) continue;
    if (count > 1) return fmt::format("{} is given {} times", flag, count);
    const std::variant<Given, std::string> given = GivenByFlag(i, settings_[i]);
    if (const auto* mistake = std::get_if<std::string>(&given)) return *mistake;
    command.flags.push_back(std::get<Given>(given));
  }
  return "";
}

std::string CompileLine::ReadDump(const CLI::App& sub, CompileCommand& command) const {
  if (sub.count("--dump") == 0) return "";
  for (const std::string& text : SplitList(dump_ == kFlagAlone ? kFinalStage : dump_)) {
    std::variant<DumpRequest, std::string> request = ParseDumpRequest(text);
    if (const auto* mistake = std::get_if<std::string>(&request)) return *mistake;
    command.dump.push_back(std::get<DumpRequest>(std::move(request)));
  }
  return "";
}

}  // namespace ftc
