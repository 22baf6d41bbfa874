#include "tools/ftc/command_line.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "llvm/Config/llvm-config.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/version.h"
#include "runtime/postmortem/rank_report.h"
#include "tools/ftc/compile_line.h"
#include "tools/ftc/explain_line.h"
#include "tools/ftc/mistake.h"
#include "tools/ftc/tune/tune_line.h"

namespace ftc {
namespace {

constexpr char kTokenize[] = "tokenize";
constexpr char kDescription[] = "Compiles a model's whole training step into a static, sharded plan.";

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
// ftc dump, verify, postmortem
//===----------------------------------------------------------------------===//

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
  TuneLine tune_line;
  ExplainCommand explain;
  ReportCommand report;
  DumpCommand dump;
  VerifyCommand verify;
  PostmortemCommand postmortem;
  ExplainTexts texts, report_texts;

  Parser() {
    app.set_version_flag(
        "--version", ft::VersionText("ftc", {{"LLVM", LLVM_VERSION_STRING}, {"code for", "x86-64, NVPTX"}}));
    app.require_subcommand(1);
    AddModel(app, model);
    AddImport(app, import);
    compile_line.AddTo(app);
    explain_settings.AddSettingsTo(AddExplain(app, explain, texts));
    report_settings.AddSettingsTo(AddReport(app, report, report_texts));
    tune_line.AddTo(app);
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
    if (sub.get_name() == "tune") return tune_line.Read();
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

void DescribeCommandLine(const std::function<void(const CLI::App&)>& describe) { describe(Parser().app); }

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
