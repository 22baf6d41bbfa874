#include "tools/ftexec/flags.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/version.h"
#include "tools/ftexec/flag_values.h"

namespace ft {
namespace {

using namespace setting;
using namespace flag_value;

constexpr const char* kDescription =
    "Trains a model by its plan. Run it alone for one rank, or under torchrun or ftrun, which say through "
    "RANK, WORLD_SIZE, MASTER_ADDR "
    "and MASTER_PORT who each process is.";
constexpr const char* kFooter =
    "Without --threads a rank uses OMP_NUM_THREADS threads, or the cores it may run on shared among the "
    "ranks of its host.\n"
    "Exit status: 0 done, 2 wrong usage, 65 bad input, 74 input/output failed, 75 another rank was lost, "
    "143 saved and ended by a signal.\n"
    "Example: torchrun --no-python --nproc-per-node=2 ftexec plan.bin --data=corpus.txt --steps=1000";

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

// What few flags have.
struct FlagTraits {
  const char* needs = "";   // flags, with " or " between, without one of which this one says nothing
  const char* device = "";  // cpu: not with cuda; cuda: with no other
  bool computes = false;    // not with null, which computes nothing
  bool trains = false;      // not where nothing is trained
  bool is_switch = false;   // stands without a value
  bool is_list = false;     // may be given again, which adds to it
};

struct FlagRow {
  std::string flag, group, placeholder, help, usual;
  std::string choices;  // those that this machine has; empty: there are no choices
  FlagTraits traits;
  std::function<std::string(const std::string& text)> set;  // fills the field; what is wrong with the text
};

template <typename Field, typename T>
FlagRow Row(const char* name, Field& field, const SettingValue<T>& value, std::string placeholder,
            std::string help) {
  const auto set = [&field, read = value.set](const std::string& text) {
    T taken{};
    const std::string mistake = read(text, taken);
    if (mistake.empty()) field = static_cast<Field>(std::move(taken));
    return mistake;
  };
  return {.flag = "--" + SettingFlag(name),
          .group = "",
          .placeholder = placeholder.empty() ? value.type : std::move(placeholder),
          .help = std::move(help),
          .usual = "",
          .choices = value.type.find('|') == std::string::npos ? "" : value.type,
          .traits = {},
          .set = set};
}

// A setting of a run, which the plan may have.
template <typename T>
FlagRow RunRow(const char* name, std::optional<T>& field, const SettingValue<T>& value, const T& usual,
               const char* placeholder, std::string help, const SettingTraits& traits) {
  if (traits.of_run.empty()) absl::StrAppend(&help, " (else the plan's, else ", value.show(usual), ")");
  const bool is_word = std::is_same_v<T, std::string>;
  return Row(name, field, value, is_word ? absl::StrReplaceAll(value.type, {{", ", "|"}}) : placeholder,
             traits.of_run.empty() ? help : traits.of_run);
}

template <typename Add>
void AddRunRows(TrainingSettings& run, Add add) {
#define FT_RUN(TYPE, NAME, DEFAULT, KEEP, VALUE, PLACEHOLDER, HELP, ...)                                \
  add(RunRow<TYPE>(#NAME, run.NAME, VALUE, DEFAULT, PLACEHOLDER, HELP, SettingTraits{__VA_ARGS__}), "", \
      FlagTraits{.trains = std::string_view(#NAME) != "seed"});
#include "runtime/base/settings.def"
}

// All flags; they fill `flags`, which outlives them.
std::vector<FlagRow> RowsOf(Flags& flags) {
  std::vector<FlagRow> rows;
  const char* group = "";
  const auto add = [&](FlagRow row, const std::string& usual, const FlagTraits& traits) {
    row.group = group;
    row.usual = usual == "0" || traits.is_switch ? "" : usual;
    row.traits = traits;
    rows.push_back(std::move(row));
  };
#define FT_GROUP(TITLE) group = TITLE;
#define FT_RUN_FLAGS() AddRunRows(flags.run, add);
#define FT_FLAG(TYPE, NAME, DEFAULT, VALUE, PLACEHOLDER, HELP, ...) \
  add(Row(#NAME, flags.NAME, VALUE, PLACEHOLDER, HELP), Shown(VALUE, flags.NAME), FlagTraits{__VA_ARGS__});
#include "tools/ftexec/flags.def"
  return rows;
}

void AddTo(CLI::App& app, const FlagRow& row) {
  const auto set = [&row](const std::string& text) {
    if (const std::string mistake = row.set(text); !mistake.empty())
      throw CLI::ValidationError(row.flag, mistake);
  };
  CLI::Option* option = nullptr;
  if (row.traits.is_switch) {
    option = app.add_flag_callback(row.flag, [set] { set("on"); }, row.help);
  } else {
    option = app.add_option_function<std::string>(row.flag, set, row.help)
                 ->type_name(row.choices.empty() ? row.placeholder : row.choices);
  }
  option->group(row.group)->default_str(row.usual);
  if (row.traits.is_list) option->expected(1)->join(',');
}

std::string Version() {
  std::vector<std::string_view> isas;
  for (const cpu::Isa isa : cpu::kIsas) isas.push_back(cpu::Name(isa));
  return VersionText("ftexec", {{"instruction sets", fmt::format("{}", fmt::join(isas, ", "))},
                                {"CUDA", cuda::HasCuda() ? "yes" : "no"}});
}

void AddAllTo(CLI::App& app, Flags& flags, const std::vector<FlagRow>& rows) {
  app.footer(kFooter);
  app.set_version_flag("--version", Version);
  app.add_option("plan", flags.plan,
                 "The plan, made by ftc compile; left out where --calibrate measures the machine")
      ->type_name("PLAN");
  for (const FlagRow& row : rows) AddTo(app, row);
}

//===----------------------------------------------------------------------===//
// What goes together
//===----------------------------------------------------------------------===//

// Whether one of the flags is given; of none, too.
bool HasOneOf(const CLI::App& app, std::string_view flags) {
  constexpr std::string_view kOr = " or ";
  const size_t end = flags.find(kOr);
  if (flags.empty() || app.count(std::string(flags.substr(0, end))) > 0) return true;
  return end != flags.npos && HasOneOf(app, flags.substr(end + kOr.size()));
}

std::string CheckTraits(const CLI::App& app, const Flags& flags, const FlagRow& row) {
  const std::string_view needs = row.traits.needs, device = row.traits.device;
  if (app.count(row.flag) == 0) return "";
  if (row.traits.trains && !flags.trains())
    return fmt::format("{} makes no sense with {}, which trains nothing", row.flag,
                       flags.evaluate       ? "--evaluate"
                       : flags.calibrates() ? "--calibrate"
                                            : "--generate");
  if (!HasOneOf(app, needs)) return fmt::format("{} needs {}", row.flag, needs);
  const bool is_cuda = flags.device == DeviceKind::kCuda;
  if (!device.empty() && (device == "cuda") != is_cuda && (device == "cuda" || is_cuda))
    return fmt::format("{} is for --device={}", row.flag, device);
  if (row.traits.computes && flags.device == DeviceKind::kNull)
    return row.flag + " makes no sense with --device=null, which computes nothing";
  return "";
}

// Of runs that measure.
std::string CheckCalibration(const CLI::App& app, const Flags& flags) {
  if (!flags.calibrates()) return flags.plan.empty() ? "plan is required" : "";
  for (const char* other :
       {"--data", "--init", "--resume", "--evaluate", "--generate", "--checkpoint-dir", "--metrics",
        "--progress", "--grace", "--cuda-graph", "--data-format", "--seed", "--allow-unused", "--adapter",
        "--eval-steps", "--prompt", "--sample-tokens", "--temperature", "--top-k"})
    if (app.count(other) > 0)
      return fmt::format("{} makes no sense with --calibrate, which trains nothing", other);
  for (const char* of_plan : {"--mesh", "--world-size"})
    if (flags.plan.empty() && app.count(of_plan) > 0)
      return fmt::format("{} is for --calibrate of a plan", of_plan);
  if (!absl::EndsWith(flags.calibrate, ".yaml") && !absl::EndsWith(flags.calibrate, ".yml"))
    return fmt::format("--calibrate={} is no .yaml or .yml, as a file for --target has to be",
                       flags.calibrate);
  if (!flags.plan.empty() && app.count("--emulate-link") > 0)
    return "--emulate-link makes no sense with --calibrate of a plan, which times kernels alone";
  return "";
}

// Of runs that train nothing.
std::string CheckInference(const Flags& flags) {
  if (flags.trains() || flags.calibrates()) return "";
  if (flags.evaluate && flags.generate > 0) return "--evaluate and --generate are two runs; give one of them";
  if (flags.evaluate && flags.data.empty()) return "--data is missing: what shall it evaluate on?";
  if (flags.generate > 0 && !flags.data.empty())
    return "--data makes no sense with --generate, which reads none";
  if (flags.evaluate && flags.data[0].weight.has_value())
    return "--data takes no weights with --evaluate: every sequence is evaluated once";
  if (flags.init.empty() && flags.resume.empty())
    return fmt::format("{} needs trained weights: --init=FILE|DIR, or --resume=CHECKPOINT",
                       flags.evaluate ? "--evaluate" : "--generate");
  if (!flags.checkpoint_dir.empty() && !flags.resumes_automatically())
    return "--checkpoint-dir says only where --resume=auto looks, where nothing is trained";
  if (!flags.init.empty() && !flags.resume.empty())
    return "--init and --resume both say which weights; give one of them";
  return "";
}

std::string CheckTogether(const CLI::App& app, const Flags& flags, const std::vector<FlagRow>& rows) {
  const bool is_null = flags.device == DeviceKind::kNull, has_world_size = app.count("--world-size") > 0;
  if (std::string mistake = CheckCalibration(app, flags); !mistake.empty()) return mistake;
  if (std::string mistake = is_null ? "" : CheckInference(flags); !mistake.empty()) return mistake;
  if (!is_null && flags.trains() && flags.data.empty()) return "--data is missing: what shall it train on?";
  if (!is_null && has_world_size && !flags.calibrates())
    return "--world-size is for --device=null and --calibrate of a plan; otherwise the launcher sets it";
  if (flags.mesh.has_value() && has_world_size && flags.mesh->world_size() != flags.world_size) {
    return absl::StrCat("--mesh=", MeshText(*flags.mesh), " has ", flags.mesh->world_size(),
                        " ranks, but --world-size is ", flags.world_size);
  }
  if (app.count("--warmup-steps") > 0 && app.count("--warmup-ratio") > 0)
    return "--warmup-ratio excludes --warmup-steps";
  if (flags.comm_backend == CollectiveBackend::kNccl && flags.device != DeviceKind::kCuda)
    return "--comm-backend=nccl is for --device=cuda";
  for (const FlagRow& row : rows) {
    if (std::string mistake = CheckTraits(app, flags, row); !mistake.empty()) return mistake;
  }
  if (flags.resumes_automatically() && flags.checkpoint_dir.empty())
    return "--resume=auto needs --checkpoint-dir";
  if (!flags.resume.empty() && !flags.resumes_automatically() && !flags.init.empty())
    return "--init and --resume=PATH both say what to start from; give one of them";
  return "";
}

// CLI11 says only that arguments were not expected; say which option may have been meant.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames()[0]);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const std::string& extra : app.remaining()) {
    const std::string name = extra.substr(0, extra.find('='));
    if (name.rfind("--", 0) != 0) return "unexpected argument '" + extra + "'";
    const std::string_view nearest = NearestName(name, views);
    return "unknown option '" + name + "'" +
           (nearest.empty() ? "; ftexec --help lists them"
                            : ", did you mean '" + std::string(nearest) + "'?");
  }
  return error.what();
}

int Usage(const std::string& message) {
  PrintError("ftexec: " + message);
  return kExitUsage;
}

}  // namespace

void DescribeFlags(const std::function<void(const CLI::App&)>& describe) {
  Flags flags;
  flags.share_gpus = false;  // whatever the environment here says
  std::vector<FlagRow> rows = RowsOf(flags);
  for (FlagRow& row : rows) row.choices.clear();
  CLI::App app(kDescription, "ftexec");
  AddAllTo(app, flags, rows);
  describe(app);
}

int ParseFlags(int argc, char** argv, Flags& flags) {
  flags.arguments.assign(argv + 1, argv + argc);
  CLI::App app(kDescription, "ftexec");
  const std::vector<FlagRow> rows = RowsOf(flags);
  AddAllTo(app, flags, rows);
  // Unknown options are looked at first, before a missing one is complained about.
  app.allow_extras();
  // For CLI11, `--metrics= --steps=3` would name the file "--steps=3".
  for (const char* const* argument = argv + 1; argument < argv + argc; ++argument) {
    const std::string_view text = *argument;
    if (text.rfind("--", 0) == 0 && text.find('=') == text.size() - 1)
      return Usage(std::string(text.substr(0, text.size() - 1)) + " is given no value");
  }
  try {
    app.parse(argc, argv);
    if (app.remaining_size() > 0) throw CLI::ExtrasError(app.remaining());
  } catch (const CLI::Success& success) {
    return app.exit(success) == 0 ? kExitOk : kExitUsage;
  } catch (const CLI::ParseError& error) {
    return Usage(Explain(app, error));
  }
  if (const std::string mistake = CheckTogether(app, flags, rows); !mistake.empty()) return Usage(mistake);
  if (flags.mesh.has_value()) flags.world_size = flags.mesh->world_size();
  return -1;
}

std::string FlagsAsMarkdown() {
  Flags flags;
  flags.share_gpus = false;  // whatever the environment here says
  std::string text, group;
  for (const FlagRow& row : RowsOf(flags)) {
    if (row.group != group)
      absl::StrAppend(&text, "\n## ", group = row.group, "\n\n| flag | default | meaning |\n|---|---|---|\n");
    const std::string value = row.traits.is_switch ? "" : "=" + row.placeholder;
    absl::StrAppend(&text, "| `", row.flag, absl::StrReplaceAll(value, {{"|", "\\|"}}), "` | ", row.usual,
                    " | ", absl::StrReplaceAll(row.help, {{"|", "\\|"}, {"<", "&lt;"}}), " |\n");
  }
  return text;
}

}  // namespace ft
