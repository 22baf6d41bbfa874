#include "tools/ftc/command_line.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string_view>

#include "CLI/CLI.hpp"
#include "compiler/shard/strategy.h"
#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/exit_status.h"

namespace ftc {
namespace {

constexpr char kDescription[] = "Compiles a model's whole training step into a static, sharded plan.";
constexpr std::string_view kFinalPhase = "memory";

// A usage error, worded for the user.
struct Mistake {
  std::string message;
};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <typename Names>
[[noreturn]] void Unknown(std::string_view what, const std::string& word, const Names& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw Mistake{ft::UnknownName(what, word, views)};
}

constexpr int kMostRanks = 1 << 24;

// Checks an option; CLI11's own message would show the largest double.
const CLI::Validator kAtLeastZero(
    [](std::string& text) {
      double value = 0;
      const bool good = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 1e300;
      return good ? std::string() : fmt::format("'{}' is no number of at least 0", text);
    },
    "");

// Options as they were typed; made into a Command when all of them are known.
struct Texts {
  std::string dump, betas = "0.9,0.95", optimizer = "adamw", mesh;
  bool dump_given = false;
};

//===----------------------------------------------------------------------===//
// ftc model
//===----------------------------------------------------------------------===//

void AddModel(CLI::App& app, ModelCommand& command) {
  CLI::App& sub = *app.add_subcommand("model", "Writes the forward graph of a model of the zoo");
  sub.add_option("name", command.name, "Family (gpt2) or preset (gpt2-124m)")->type_name("NAME");
  sub.add_flag("--list", command.list, "Lists models and presets");
  sub.add_option("--preset", command.preset, "Preset of the family; debug by default")->type_name("P");
  sub.add_option("-o,--output", command.output, "File to write; standard output by default")
      ->type_name("model.mlir");
  ft::models::Overrides& o = command.overrides;
  const auto dimension = [&](const char* name, std::optional<int64_t>& value, const char* help) {
    sub.add_option(name, value, help)->type_name("N")->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  };
  dimension("--batch", o.batch, "Sequences per rank and step");
  dimension("--seq", o.seq, "Tokens of each sequence");
  dimension("--layers", o.layers, "Blocks");
  dimension("--hidden", o.hidden, "Width of the residual stream");
  dimension("--heads", o.heads, "Attention heads");
  dimension("--kv-heads", o.kvHeads, "Heads of keys and values");
  dimension("--ffn", o.ffn, "Width of the MLP");
  dimension("--vocab", o.vocab, "Vocabulary");
  dimension("--context", o.context, "Longest sequence");
  dimension("--latent-bits", o.latentBits, "free_transformer: bits of the latent variable");
  sub.add_option("--beta", o.beta, "free_transformer: weight of the KL term")->type_name("X");
  sub.add_option("--kappa", o.kappa, "free_transformer: nats of KL that are free")->type_name("X");
}

void CheckModel(const ModelCommand& command) {
  if (command.name.empty() && !command.list) throw Mistake{"which model? ftc model --list shows all"};
}

//===----------------------------------------------------------------------===//
// ftc compile
//===----------------------------------------------------------------------===//

void AddCompile(CLI::App& app, CompileCommand& command, Texts& texts) {
  CLI::App& sub = *app.add_subcommand("compile", "Compiles a model into a plan");
  auto& options = command.options;
  sub.add_option("model", command.model, "The model")->type_name("model.mlir")->required();
  sub.add_option("--strategy", options.strategy, "no_shard (ddp), shard_grad_op (zero2), full_shard (zero3)")
      ->type_name("S");
  sub.add_option("-o,--output", command.output,
                 "Plan to write; plan.bin by default, none when something is dumped")
      ->type_name("plan.bin");
  sub.add_option("--optimizer", texts.optimizer, "adamw")->type_name("NAME")->capture_default_str();
  sub.add_option("--betas", texts.betas, "Decay of the moments")->type_name("B1,B2")->capture_default_str();
  sub.add_option("--eps", options.eps, "Added to the root of the second moment")
      ->type_name("X")
      ->capture_default_str()
      ->check(kAtLeastZero);
  sub.add_option("--weight-decay", options.weightDecay, "Decoupled decay of parameters of rank 2 and more")
      ->type_name("X")
      ->capture_default_str()
      ->check(kAtLeastZero);
  sub.add_option("--clip", options.clip, "Largest global norm of the gradient; 0 does not clip")
      ->type_name("X")
      ->capture_default_str()
      ->check(kAtLeastZero);
  sub.add_option("--prefetch", options.prefetch, "Units gathered ahead of their use: one or none")
      ->type_name("P")
      ->capture_default_str();
  // A flag, so that it takes a value only after '='.
  sub.add_flag(fmt::format("--dump{{{}}}", kFinalPhase), texts.dump,
               "Prints the IR after PHASE[,PHASE]; the final one by default");
  sub.add_option("--dump-dir", command.dump_dir, "Writes the IR after each phase to this folder")
      ->type_name("DIR");
}

void CheckCompile(CompileCommand& command, const Texts& texts) {
  auto& options = command.options;
  if (options.strategy.empty())
    throw Mistake{
        fmt::format("--strategy is missing; one of: {}", fmt::join(ft::compiler::strategyNames(), ", "))};
  if (ft::compiler::lookupStrategy(options.strategy) == nullptr)
    Unknown("strategy", options.strategy, ft::compiler::strategyNames());
  if (texts.optimizer != "adamw") Unknown("optimizer", texts.optimizer, std::vector<std::string>{"adamw"});
  if (options.prefetch != "one" && options.prefetch != "none")
    Unknown("prefetch", options.prefetch, std::vector<std::string>{"one", "none"});
  const std::vector<std::string> betas = Split(texts.betas, ',');
  if (betas.size() != 2 || !CLI::detail::lexical_cast(betas[0], options.beta1) ||
      !CLI::detail::lexical_cast(betas[1], options.beta2) ||
      !(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1)) {
    throw Mistake{
        fmt::format("--betas wants two numbers in [0, 1), such as 0.9,0.95, not '{}'", texts.betas)};
  }
  std::vector<std::string> phases;
  for (const auto& phase : ft::compiler::phases()) phases.push_back(phase.name.str());
  if (texts.dump_given) command.dump = Split(texts.dump, ',');
  for (const std::string& phase : command.dump) {
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) Unknown("phase", phase, phases);
  }
  if (command.output.empty() && command.dump.empty() && command.dump_dir.empty()) command.output = "plan.bin";
}

//===----------------------------------------------------------------------===//
// ftc explain, dump, verify
//===----------------------------------------------------------------------===//

void AddExplain(CLI::App& app, ExplainCommand& command, Texts& texts) {
  CLI::App& sub =
      *app.add_subcommand("explain", "Prints what a plan costs each rank: memory, traffic, FLOPs");
  sub.add_option("plan", command.plan, "The plan")->type_name("plan.bin")->required();
  sub.add_option("--world-size", command.world_size, "Ranks")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostRanks));
  sub.add_option("--mesh", texts.mesh, "Ranks by axis")->type_name("replica:R,shard:S");
  sub.add_flag("--json", command.json, "For programs");
}

// "replica:2,shard:4"
std::pair<int, int> ParseMesh(const std::string& text) {
  int replica = 0, shard = 0;
  for (const std::string& part : Split(text, ',')) {
    const std::vector<std::string> pair = Split(part, ':');
    int* size = pair[0] == "replica" ? &replica : pair[0] == "shard" ? &shard : nullptr;
    if (pair.size() != 2 || size == nullptr || *size != 0 || !CLI::detail::lexical_cast(pair[1], *size) ||
        *size < 1 || *size > kMostRanks) {
      throw Mistake{fmt::format("--mesh wants replica:R,shard:S, not '{}'", text)};
    }
  }
  return {std::max(replica, 1), std::max(shard, 1)};
}

void CheckExplain(const CLI::App& sub, ExplainCommand& command, const Texts& texts) {
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

void AddPlanArgument(CLI::App& app, const char* name, const char* help, std::string& plan) {
  app.add_subcommand(name, help)->add_option("plan", plan, "The plan")->type_name("plan.bin")->required();
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
  CompileCommand compile;
  ExplainCommand explain;
  DumpCommand dump;
  VerifyCommand verify;
  Texts texts;

  Parser() {
    app.set_version_flag("--version", FT_VERSION);
    app.require_subcommand(1);
    AddModel(app, model);
    AddCompile(app, compile, texts);
    AddExplain(app, explain, texts);
    AddPlanArgument(app, "dump", "Prints a plan as text", dump.plan);
    AddPlanArgument(app, "verify", "Checks a plan: bounds, live ranges, order between streams", verify.plan);
    for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
  }

  Command Parse(int argc, char** argv) {
    std::vector<std::string> arguments = Normalise(argc, argv, app);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
    app.parse(arguments);
    const CLI::App& sub = *app.get_subcommands().front();
    RefuseExtras(sub);
    if (sub.get_name() == "model") return CheckModel(model), model;
    if (sub.get_name() == "compile") {
      texts.dump_given = sub.count("--dump") > 0;
      return CheckCompile(compile, texts), compile;
    }
    if (sub.get_name() == "explain") return CheckExplain(sub, explain, texts), explain;
    if (sub.get_name() == "dump") return dump;
    return verify;
  }
};

int Usage(const std::string& message) {
  std::cerr << "ftc: " << message << "\n";
  return ft::kExitUsage;
}

}  // namespace

std::variant<Command, int> ParseCommandLine(int argc, char** argv) {
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
