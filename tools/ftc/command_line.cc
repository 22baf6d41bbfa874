#include "tools/ftc/command_line.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "CLI/CLI.hpp"
#include "compiler/shard/strategy.h"
#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/plan/mesh.h"
#include "runtime/postmortem/rank_report.h"
#include "runtime/targets/shipped_targets.h"
#include "tools/ftc/compile_line.h"
#include "tools/ftc/config/target_file.h"
#include "tools/ftc/config/values.h"

namespace ftc {
namespace {

constexpr char kTokenize[] = "tokenize";
constexpr char kDescription[] = "Compiles a model's whole training step into a static, sharded plan.";

// A usage error, worded for the user.
struct Mistake {
  std::string message;
};

template <typename Names>
[[noreturn]] void Unknown(std::string_view what, const std::string& word, const Names& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw Mistake{ft::UnknownName(what, word, views)};
}

constexpr int kMostRanks = 1 << 24;

// Options as they were typed; made into a Command when all of them are known.
struct Texts {
  std::string mesh, compare, peak, device, world_sizes;
  std::vector<std::string> paths;
};

//===----------------------------------------------------------------------===//
// ftc model, import
//===----------------------------------------------------------------------===//

void AddOverride(CLI::App& sub, const ft::models::ModelOption& option, const char* help,
                 ft::models::Overrides& overrides) {
  std::visit(
      [&]<typename Value>(Value ft::models::ModelConfig::*) {
        if constexpr (std::is_same_v<Value, bool>) {
          sub.add_flag_callback(
              fmt::format("--{}", option.name), [&overrides, name = option.name] { overrides[name] = true; },
              help);
        } else {
          const auto set = [&overrides, name = option.name](const Value& value) { overrides[name] = value; };
          sub.add_option_function<Value>(fmt::format("--{}", option.name), set, help)
              ->type_name(option.typeName);
        }
      },
      option.member);
}

void AddModel(CLI::App& app, ModelCommand& command) {
  CLI::App& sub = *app.add_subcommand("model", "Writes the forward graph of a model of the zoo");
  sub.add_option("name", command.name, "Family (gpt2) or preset (gpt2-124m)")->type_name("NAME");
  sub.add_flag("--list", command.list, "Lists models and presets");
  sub.add_option("--preset", command.preset, "Preset of the family; debug by default")->type_name("P");
  sub.add_option("-o,--output", command.output, "File to write; standard output by default")
      ->type_name("model.mlir");
  for (const ft::models::ModelOption& option : ft::models::modelOptions())
    AddOverride(sub, option, option.help, command.overrides);
}

void AddImport(CLI::App& app, ImportCommand& command) {
  CLI::App& sub = *app.add_subcommand(
      "import", "Writes the forward graph of a model of transformers, from its config.json");
  sub.add_option("path", command.path, "The folder, or its config.json")->type_name("DIR")->required();
  sub.add_option("-o,--output", command.output, "File to write; standard output by default")
      ->type_name("model.mlir");
  for (const ft::models::ModelOption& option : ft::models::modelOptions()) {
    if (!ft::models::changesNoFact(option)) continue;
    const bool is_dropout = std::string_view(option.name) == "dropout";
    AddOverride(sub, option,
                is_dropout ? "Rate of all dropout that the model has, instead of its own; 0 turns it off"
                           : option.help,
                command.overrides);
  }
}

void CheckModel(const ModelCommand& command) {
  if (command.name.empty() && !command.list) throw Mistake{"which model? ftc model --list shows all"};
}

//===----------------------------------------------------------------------===//
// ftc explain, dump, verify
//===----------------------------------------------------------------------===//

// What is explained: plans or a model, ranks and machine.
void AddSubject(CLI::App& sub, ExplainCommand& command, Texts& texts) {
  sub.add_option("plan", texts.paths, "The plan; several with --compare; or a model, which is compiled first")
      ->type_name("plan.bin|model.mlir")
      ->required();
  sub.add_option("--world-size", command.world_size, "Ranks; what the plan was compiled for by default")
      ->type_name("N")
      ->check(CLI::Range(1, kMostRanks));
  sub.add_option("--mesh", texts.mesh, "Ranks by axis")->type_name("replica:R,shard:S");
  // Flags, so that they take a value only after '='.
  sub.add_flag("--compare{all}", texts.compare,
               "Plans side by side; of a model: its STRATEGY[,STRATEGY], or all");
  sub.add_option("--device", texts.device,
                 "Device that the bytes are those of; that of the target by default")
      ->type_name("cpu|cuda");
  sub.add_option("--target", command.target,
                 "Machine that seconds are estimated for; the plan's own by default")
      ->type_name("NAME|FILE.yaml");
}

CLI::App& AddExplain(CLI::App& app, ExplainCommand& command, Texts& texts) {
  CLI::App& sub =
      *app.add_subcommand("explain", "Prints what a plan costs each rank: memory, traffic, FLOPs");
  AddSubject(sub, command, texts);
  sub.add_flag(fmt::format("--peak{{{}}}", ExplainCommand::kUsualPeak), texts.peak,
               "The N largest buffers that are live at the peak");
  sub.add_flag("--schedule", command.schedule,
               "When each transfer of a step would run on the target, and why it stands where it stands");
  sub.add_option("--against", command.against,
                 "What each instruction took in a trace of ftexec, beside what it was reckoned to take")
      ->type_name("TRACE.json");
  sub.add_flag("--json", command.json, "For programs");
  return sub;
}

CLI::App& AddReport(CLI::App& app, ReportCommand& command, Texts& texts) {
  CLI::App& sub = *app.add_subcommand(
      "report", "Writes what a plan costs, and what a run of it took, as one page to look at");
  AddSubject(sub, command.subject, texts);
  sub.add_option("--world-sizes", texts.world_sizes,
                 "Numbers of ranks that the page compares; powers of two by default")
      ->type_name("N,N,...");
  sub.add_option("--run", command.run, "Metrics of a run of the plan (ftexec --metrics)")
      ->type_name("metrics.jsonl");
  sub.add_option("--trace", command.trace, "Trace of a run of the plan (ftexec --trace)")
      ->type_name("trace.json");
  sub.add_option("-o,--output", command.output, "Page to write; - is standard output")
      ->type_name("report.html")
      ->required();
  return sub;
}

// "replica:2,shard:4"
std::pair<int, int> ParseMesh(const std::string& text) {
  const absl::StatusOr<ft::Mesh> mesh = ft::ParseMesh(text);
  if (!mesh.ok()) throw Mistake{fmt::format("--mesh={}: {}", text, std::string(mesh.status().message()))};
  return {mesh->replica, mesh->shard};
}

void CheckMesh(const CLI::App& sub, ExplainCommand& command, const Texts& texts) {
  if (texts.mesh.empty()) return;
  command.mesh = ParseMesh(texts.mesh);
  const int64_t ranks = int64_t{command.mesh->first} * command.mesh->second;
  if (ranks > kMostRanks)
    throw Mistake{fmt::format("--mesh={} has {} ranks, more than {}", texts.mesh, ranks, kMostRanks)};
  if (sub.count("--world-size") > 0 && ranks != command.world_size) {
    throw Mistake{
        fmt::format("--mesh={} has {} ranks, but --world-size is {}", texts.mesh, ranks, command.world_size)};
  }
  command.world_size = static_cast<int>(ranks);
}

void CheckDevice(const Texts& texts, ExplainCommand& command) {
  if (texts.device.empty()) return;
  const auto device = std::find_if(ft::kDeviceClasses.begin(), ft::kDeviceClasses.end(),
                                   [&](ft::DeviceClass known) { return ft::Name(known) == texts.device; });
  if (device == ft::kDeviceClasses.end())
    Unknown("device", texts.device, std::vector<std::string_view>{"cpu", "cuda"});
  command.device = *device;
}

bool IsModel(const std::string& path) {
  return path.size() > 5 && path.compare(path.size() - 5, 5, ".mlir") == 0;
}

// A trace says of which plan and ranks it is.
void CheckAgainst(const CLI::App& sub, const ExplainCommand& command, const Texts& texts) {
  if (command.against.empty()) return;
  for (const char* other : {"--compare", "--schedule", "--peak", "--mesh", "--world-size", "--device"})
    if (sub.count(other) > 0)
      throw Mistake{fmt::format("--against is of the plan and ranks of the trace; leave out {}", other)};
  if (std::any_of(texts.paths.begin(), texts.paths.end(), IsModel))
    throw Mistake{"--against wants the plan.bin that was traced, not a model"};
}

void CheckPlans(const Texts& texts, ExplainCommand& command) {
  command.plans = texts.paths;
  if (command.compare && texts.compare != "all")
    throw Mistake{fmt::format("--compare={} is for a model; --compare alone compares plans", texts.compare)};
  if (!command.compare && command.plans.size() > 1) throw Mistake{"several plans need --compare"};
  if (!command.settings.flags.empty())
    throw Mistake{fmt::format("{} is for a model, {} is compiled already",
                              NameOf(command.settings.flags[0].origin), command.plans[0])};
}

void CheckSubject(const CLI::App& sub, const CompileLine& settings, ExplainCommand& command,
                  const Texts& texts) {
  if (const std::string mistake = settings.ReadSettings(command.settings); !mistake.empty())
    throw Mistake{mistake};
  CheckMesh(sub, command, texts);
  command.compare = sub.count("--compare") > 0;
  if (!command.target.empty() && !IsTargetFile(command.target) && ft::FindTarget(command.target) == nullptr)
    Unknown("target", command.target, ft::TargetNames());
  CheckDevice(texts, command);
  if (std::none_of(texts.paths.begin(), texts.paths.end(), IsModel)) return CheckPlans(texts, command);
  if (texts.paths.size() > 1)
    throw Mistake{"a model is explained alone; --compare=S1,S2 compares its strategies"};
  command.model = texts.paths[0];
  if (!command.compare) return;
  if (texts.compare == "all") {
    for (const ft::compiler::Strategy& strategy : ft::compiler::strategies())
      command.strategies.push_back(strategy.name.str());
    return;
  }
  command.strategies = SplitList(texts.compare);
  for (const std::string& strategy : command.strategies) {
    if (ft::compiler::lookupStrategy(strategy) == nullptr)
      Unknown("strategy", strategy, ft::compiler::strategyNames());
  }
}

void CheckExplain(const CLI::App& sub, const CompileLine& settings, ExplainCommand& command,
                  const Texts& texts) {
  CheckSubject(sub, settings, command, texts);
  if (command.schedule && (command.compare || sub.count("--peak") > 0))
    throw Mistake{"--schedule shows one plan, and no memory; leave out --compare and --peak"};
  CheckAgainst(sub, command, texts);
  if (sub.count("--peak") == 0) return;
  int count = 0;
  if (!CLI::detail::lexical_cast(texts.peak, count) || count < 1)
    throw Mistake{fmt::format("--peak wants a number of buffers, not '{}'", texts.peak)};
  command.peak = count;
}

void CheckReport(const CLI::App& sub, const CompileLine& settings, ReportCommand& command,
                 const Texts& texts) {
  CheckSubject(sub, settings, command.subject, texts);
  if (command.subject.compare && !(command.run.empty() && command.trace.empty()))
    throw Mistake{"--run and --trace are of one plan; leave out --compare"};
  constexpr size_t kMostSizes = 64;
  for (const std::string& text : SplitList(texts.world_sizes)) {
    int ranks = 0;
    if (!CLI::detail::lexical_cast(text, ranks) || ranks < 1 || ranks > kMostRanks)
      throw Mistake{fmt::format("--world-sizes={}: '{}' is no number of ranks",
                                ft::OneLine(texts.world_sizes, 200), ft::OneLine(text, 200))};
    command.world_sizes.push_back(ranks);
  }
  if (command.world_sizes.size() > kMostSizes)
    throw Mistake{
        fmt::format("--world-sizes has {} sizes, more than {}", command.world_sizes.size(), kMostSizes)};
}

CLI::App& AddOfPlan(CLI::App& app, const char* name, const char* help, std::string& plan) {
  CLI::App& sub = *app.add_subcommand(name, help);
  sub.add_option("plan", plan, "The plan")->type_name("plan.bin")->required();
  return sub;
}

void AddPostmortem(CLI::App& app, PostmortemCommand& command) {
  CLI::App& sub = *app.add_subcommand(
      "postmortem", "Prints what hung where, from the reports of ranks that were ended (ftexec --log-dir)");
  sub.add_option("folder", command.folder, "The folder of ftexec's --log-dir")->type_name("DIR")->required();
  sub.add_option("plan", command.plan, "The plan that the run should have had")->type_name("plan.bin");
  sub.add_option("--attempt", command.attempt,
                 "Which one of a run that was restarted, counted from 0; the last one by default")
      ->type_name("N")
      ->check(CLI::Range(0, ft::kMaxAttempt));
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

// CLI11 only says that arguments were not expected; say what may have been meant.
void RefuseExtras(const CLI::App& sub) {
  std::vector<std::string> names;
  for (const CLI::Option* option : sub.get_options()) {
    if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames()[0]);
  }
  for (const std::string& extra : sub.remaining()) {
    if (extra.rfind('-', 0) != 0)
      throw Mistake{
          fmt::format("unexpected argument '{}'; ftc {} --help shows what it takes", extra, sub.get_name())};
    Unknown("option", extra.substr(0, extra.find('=')), names);
  }
}

// `ftc --dump model.mlir --strategy=S` is short for `ftc compile --dump ...`.
std::vector<std::string> Normalise(int argc, char** argv, const CLI::App& app) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) throw Mistake{"which command? ftc --help lists them"};
  if (arguments[0].rfind("--dump", 0) == 0) arguments.insert(arguments.begin(), "compile");
  // CLI11 would take the next argument for the value.
  for (const std::string& argument : arguments) {
    if (argument.rfind("--", 0) == 0 && argument != "--dump=" && argument.find('=') == argument.size() - 1)
      throw Mistake{argument.substr(0, argument.size() - 1) + " is given no value"};
  }
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  const bool known = std::find(names.begin(), names.end(), arguments[0]) != names.end();
  if (!known && arguments[0].rfind('-', 0) != 0) Unknown("command", arguments[0], names);
  return arguments;
}

struct Parser {
  CLI::App app{kDescription, "ftc"};
  ModelCommand model;
  ImportCommand import;
  CompileLine compile_line;
  CompileLine explain_settings;
  CompileLine report_settings;
  ExplainCommand explain;
  ReportCommand report;
  DumpCommand dump;
  VerifyCommand verify;
  PostmortemCommand postmortem;
  Texts texts, report_texts;

  Parser() {
    app.set_version_flag("--version", FT_VERSION);
    app.require_subcommand(1);
    AddModel(app, model);
    AddImport(app, import);
    compile_line.AddTo(app);
    explain_settings.AddSettingsTo(AddExplain(app, explain, texts));
    report_settings.AddSettingsTo(AddReport(app, report, report_texts));
    AddOfPlan(app, "dump", "Prints a plan as text", dump.plan)
        .add_flag("--kernels", dump.kernels, "The bodies of clusters, what they move, and their code");
    AddOfPlan(app, "verify",
              "Proves a plan: bounds, live ranges, order, communication, addresses at world sizes 1 to 4096; "
              "and makes "
              "its code again",
              verify.plan);
    AddPostmortem(app, postmortem);
    app.add_subcommand(
        kTokenize,
        "Makes .ftd files of texts, records and conversations (ft-tokenize of the Python package)");
    for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
  }

  Command Parse(int argc, char** argv) {
    std::vector<std::string> arguments = Normalise(argc, argv, app);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
    app.parse(arguments);
    const CLI::App& sub = *app.get_subcommands().front();
    RefuseExtras(sub);
    if (sub.get_name() == "model") return CheckModel(model), model;
    if (sub.get_name() == "import") return import;
    if (sub.get_name() == "compile") {
      CompileCommand compile;
      if (const std::string mistake = compile_line.Read(sub, compile); !mistake.empty())
        throw Mistake{mistake};
      return compile;
    }
    if (sub.get_name() == "explain") return CheckExplain(sub, explain_settings, explain, texts), explain;
    if (sub.get_name() == "report") return CheckReport(sub, report_settings, report, report_texts), report;
    if (sub.get_name() == "dump") return dump;
    if (sub.get_name() == "postmortem") return postmortem;
    return verify;
  }
};

int Usage(const std::string& message) {
  ft::PrintError("ftc: " + message);
  return ft::kExitUsage;
}

}  // namespace

std::variant<Command, int> ParseCommandLine(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == kTokenize)
    return TokenizeCommand{.arguments = {argv + 2, argv + argc}};
  Parser parser;
  try {
    return parser.Parse(argc, argv);
  } catch (const CLI::Success& success) {
    return parser.app.exit(success) == 0 ? ft::kExitOk : ft::kExitUsage;
  } catch (const CLI::ParseError& error) {
    return Usage(error.what());
  } catch (const Mistake& mistake) {
    return Usage(mistake.message);
  }
}

}  // namespace ftc
