#include "tools/ftexec/checkpoint_flags.h"

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ft {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 48;

// "500": steps; "30m", "90s", "2h": time.
void ParseSaveEvery(const std::string& text, CheckpointFlags& flags) {
  int64_t steps = 0;
  absl::Duration time;
  if (absl::SimpleAtoi(text, &steps) && steps >= 1 && steps <= kMostSteps) {
    flags.every_steps = steps;
    flags.every = absl::ZeroDuration();
  } else if (absl::ParseDuration(text, &time) && time >= absl::Seconds(1) && time <= absl::Hours(24 * 365)) {
    flags.every_steps = 0;
    flags.every = time;
  } else {
    throw CLI::ValidationError("--save-every",
                               "wants a number of steps, or a time such as 30m, not '" + text + "'");
  }
}

void ParseType(const std::string& text, CheckpointFlags& flags) {
  const absl::StatusOr<CheckpointType> type = ParseCheckpointType(text);
  if (!type.ok() && text != "auto")
    throw CLI::ValidationError("--state-dict-type", "'" + text + "' is none of auto, full, sharded, local");
  flags.type = type.ok() ? std::optional(*type) : std::nullopt;
}

void AddCount(CLI::App& app, const char* name, uint64_t& count, const char* help) {
  app.add_option(name, count, help)->type_name("N")->check(CLI::Range(int64_t{1}, kMostSteps));
}

void OnOff(CLI::App& app, const char* name, bool& value, const char* help) {
  const auto set = [name, &value](const std::string& text) {
    if (text != "on" && text != "off")
      throw CLI::ValidationError(name, "'" + text + "' is neither on nor off");
    value = text == "on";
  };
  app.add_option_function<std::string>(name, set, help)
      ->type_name("on|off")
      ->default_str(value ? "on" : "off");
}

}  // namespace

void AddCheckpoints(CLI::App& app, CheckpointFlags& flags) {
  app.add_option("--checkpoint-dir", flags.folder,
                 "Write checkpoints into this folder, each as step-XXXXXXXX; a run always ends with one")
      ->type_name("DIR");
  app.add_option_function<std::string>(
         "--save-every", [&flags](const std::string& text) { ParseSaveEvery(text, flags); },
         "Steps, or time (90s, 30m, 2h), between two checkpoints; else one at the end")
      ->type_name("N|TIME");
  AddCount(app, "--keep", flags.keep.newest,
           "Keep the newest N checkpoints; without any --keep all are kept");
  AddCount(app, "--keep-every", flags.keep.every, "Keep those of a step that N divides, too");
  AddCount(app, "--keep-best", flags.keep.best,
           "Keep the N with the least loss of an evaluation at their step, too");
  app.add_option_function<std::string>(
         "--state-dict-type", [&flags](const std::string& text) { ParseType(text, flags); },
         "full: whole tensors, loadable by from_pretrained; sharded: a file for each rank; local: as "
         "sharded, for the "
         "same ranks and units only; auto: full on one host, sharded on several")
      ->type_name("auto|full|sharded|local")
      ->default_str("auto");
  OnOff(app, "--async-save", flags.async,
        "Whether training goes on while a checkpoint is written, from a copy in host memory");
  app.add_option(
         "--resume", flags.resume,
         "Go on from this checkpoint; auto: from the newest in --checkpoint-dir that is whole, else begin")
      ->type_name("auto|PATH");
  const auto changed = [&flags](const std::string& text) {
    if (text != "restart") throw CLI::ValidationError("--data-changed", "'" + text + "' is not restart");
    flags.restart_data = true;
  };
  app.add_option_function<std::string>(
         "--data-changed", changed,
         "restart: with --resume, data that is not what the run had is read from its "
         "beginning; otherwise that is an error")
      ->type_name("restart");
}

std::string CheckTogether(const CLI::App& app, const CheckpointFlags& flags) {
  for (const char* name :
       {"--save-every", "--keep", "--keep-every", "--keep-best", "--async-save", "--state-dict-type"}) {
    if (app.count(name) > 0 && !flags.saves()) return absl::StrCat(name, " needs --checkpoint-dir");
  }
  if (flags.resumes_automatically() && !flags.saves()) return "--resume=auto needs --checkpoint-dir";
  if (app.count("--data-changed") > 0 && flags.resume.empty()) return "--data-changed needs --resume";
  if (!flags.resume.empty() && !flags.resumes_automatically() && app.count("--init") > 0)
    return "--init and --resume=PATH both say what to start from; give one of them";
  return "";
}

}  // namespace ft
