#include "tools/ftc/explain_line.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/shard/strategy.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/plan/mesh.h"
#include "runtime/targets/shipped_targets.h"
#include "tools/ftc/config/settings.h"
#include "tools/ftc/config/target_file.h"
#include "tools/ftc/config/values.h"
#include "tools/ftc/mistake.h"

namespace ftc {
namespace {

constexpr int kMostRanks = 1 << 24;

// What is explained: plans or a model, ranks and machine.
void AddSubject(CLI::App& sub, ExplainCommand& command, ExplainTexts& texts) {
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

// "replica:2,shard:4"
std::pair<int, int> ParseMesh(const std::string& text) {
  const absl::StatusOr<ft::Mesh> mesh = ft::ParseMesh(text);
  if (!mesh.ok()) throw Mistake{fmt::format("--mesh={}: {}", text, std::string(mesh.status().message()))};
  return {mesh->replica, mesh->shard};
}

void CheckMesh(const CLI::App& sub, ExplainCommand& command, const ExplainTexts& texts) {
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

void CheckDevice(const ExplainTexts& texts, ExplainCommand& command) {
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
void CheckAgainst(const CLI::App& sub, const ExplainCommand& command, const ExplainTexts& texts) {
  if (command.against.empty()) return;
  for (const char* other : {"--compare", "--schedule", "--peak", "--mesh", "--world-size", "--device"})
    if (sub.count(other) > 0)
      throw Mistake{fmt::format("--against is of the plan and ranks of the trace; leave out {}", other)};
  if (std::any_of(texts.paths.begin(), texts.paths.end(), IsModel))
    throw Mistake{"--against wants the plan.bin that was traced, not a model"};
}

// "2T": 2e12.
void ReadTokens(const CLI::App& sub, const ExplainTexts& texts, ExplainCommand& command) {
  if (texts.tokens.empty()) return;
  for (const char* other : {"--compare", "--schedule", "--against"})
    if (sub.count(other) > 0)
      throw Mistake{fmt::format("--tokens is of a whole run of one plan; leave out {}", other)};
  constexpr std::string_view kSuffixes = "KMBT";
  constexpr double kMostTokens = 1e18;
  const char last = static_cast<char>(std::toupper(static_cast<unsigned char>(texts.tokens.back())));
  const size_t power = kSuffixes.find(last) + 1;  // 0: none
  const std::string digits = texts.tokens.substr(0, texts.tokens.size() - (power > 0 ? 1 : 0));
  const std::optional<double> number = ReadNumber(digits);
  const double tokens = std::round(number.value_or(0) * std::pow(1000.0, static_cast<double>(power)));
  if (!(tokens >= 1) || tokens > kMostTokens)
    throw Mistake{fmt::format("--tokens wants a number of tokens, such as 300B or 2T, not '{}'",
                              ft::OneLine(texts.tokens, 200))};
  command.tokens = static_cast<uint64_t>(tokens);
}

void CheckPlans(const ExplainTexts& texts, ExplainCommand& command) {
  command.plans = texts.paths;
  if (command.compare && texts.compare != "all")
    throw Mistake{fmt::format("--compare={} is for a model; --compare alone compares plans", texts.compare)};
  if (!command.compare && command.plans.size() > 1) throw Mistake{"several plans need --compare"};
  const CompileCommand& settings = command.settings;
  if (settings.config.empty() && settings.flags.empty()) return;
  throw Mistake{fmt::format("{} is for a model, {} is compiled already",
                            settings.config.empty() ? NameOf(settings.flags[0].origin) : "--config",
                            command.plans[0])};
}

// The strategies of a model that are compared.
void ReadStrategies(const ExplainTexts& texts, ExplainCommand& command) {
  for (const Given& flag : command.settings.flags)
    if (flag.setting == SettingIndex("strategy"))
      throw Mistake{fmt::format("--compare says which strategies; leave out {}", NameOf(flag.origin))};
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

void CheckSubject(const CLI::App& sub, const CompileLine& settings, ExplainCommand& command,
                  const ExplainTexts& texts) {
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
  if (command.compare) ReadStrategies(texts, command);
}

}  // namespace

std::vector<int> ReadWorldSizes(const std::string& texts) {
  constexpr size_t kMostSizes = 64;
  std::vector<int> sizes;
  for (const std::string& text : SplitList(texts)) {
    int ranks = 0;
    if (!CLI::detail::lexical_cast(text, ranks) || ranks < 1 || ranks > kMostRanks)
      throw Mistake{fmt::format("--world-sizes={}: '{}' is no number of ranks", ft::OneLine(texts, 200),
                                ft::OneLine(text, 200))};
    sizes.push_back(ranks);
  }
  if (sizes.size() > kMostSizes)
    throw Mistake{fmt::format("--world-sizes has {} sizes, more than {}", sizes.size(), kMostSizes)};
  return sizes;
}

CLI::App& AddExplain(CLI::App& app, ExplainCommand& command, ExplainTexts& texts) {
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
  sub.add_option("--tokens", texts.tokens,
                 "How long it takes to train on so many, and what faster rates would save; with K, M, B or T")
      ->type_name("N");
  sub.add_flag("--json", command.json, "For programs");
  return sub;
}

CLI::App& AddReport(CLI::App& app, ReportCommand& command, ExplainTexts& texts) {
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

void CheckExplain(const CLI::App& sub, const CompileLine& settings, ExplainCommand& command,
                  const ExplainTexts& texts) {
  CheckSubject(sub, settings, command, texts);
  if (command.schedule && (command.compare || sub.count("--peak") > 0))
    throw Mistake{"--schedule shows one plan, and no memory; leave out --compare and --peak"};
  if (command.compare && !command.json && sub.count("--peak") > 0)
    throw Mistake{"--compare lists no buffers but with --json; leave out --peak"};
  CheckAgainst(sub, command, texts);
  ReadTokens(sub, texts, command);
  if (sub.count("--peak") == 0) return;
  int count = 0;
  if (!CLI::detail::lexical_cast(texts.peak, count) || count < 1)
    throw Mistake{fmt::format("--peak wants a number of buffers, not '{}'", texts.peak)};
  command.peak = count;
}

void CheckReport(const CLI::App& sub, const CompileLine& settings, ReportCommand& command,
                 const ExplainTexts& texts) {
  CheckSubject(sub, settings, command.subject, texts);
  if (command.subject.compare && !(command.run.empty() && command.trace.empty()))
    throw Mistake{"--run and --trace are of one plan; leave out --compare"};
  if (!command.trace.empty() && !command.subject.model.empty())
    throw Mistake{"--trace wants the plan.bin that was traced, not a model"};
  command.world_sizes = ReadWorldSizes(texts.world_sizes);
}

}  // namespace ftc
