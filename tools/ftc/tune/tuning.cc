#include "tools/ftc/tune/tuning.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/config/settings.h"
#include "tools/ftc/step_cost.h"

namespace ftc {
namespace {

using ft::compiler::TunePoint;
using ft::compiler::TuneRequest;
using ft::compiler::TuneResult;
using ft::compiler::TuneSpace;

// Settings that a search chooses, unless they are decided.
constexpr std::string_view kChosen[] = {"strategy",
                                        "mesh",
                                        "batch",
                                        "micro_steps",
                                        "remat",
                                        "offload",
                                        "wrap",
                                        "persistence_threshold",
                                        "prefetch",
                                        "limit_all_gathers",
                                        "gather_bucket_mb",
                                        "reduce_bucket_mb",
                                        "bucket_cap_mb"};

bool IsDecided(const Origin& origin, Decided decided) {
  return origin.from == Origin::From::kFlag ||
         (decided == Decided::kByFlagsAndFile && origin.from != Origin::From::kDefault);
}

}  // namespace

TuneRequest TuneRequestOf(const std::string& model, const Effective& effective, Decided decided,
                          uint64_t memory_bytes) {
  const Configuration& configuration = effective.configuration;
  TuneRequest request;
  request.model = model;
  request.base = CompileOptionsOf(configuration);
  request.globalBatch = configuration.run.global_batch;
  request.memoryBytes = memory_bytes;
  if (memory_bytes == 0)
    request.memoryBytes =
        static_cast<uint64_t>(static_cast<double>(request.base.target.memory_bytes()) * kTight);
  // A limit of every row, like that of a device: the search sees by how much a row misses it.
  if (const uint64_t budget = std::exchange(request.base.memoryBudget, 0); budget != 0)
    request.memoryBytes = request.memoryBytes == 0 ? budget : std::min(request.memoryBytes, budget);
  for (const std::string_view name : kChosen)
    if (IsDecided(effective.OriginOf(name), decided)) request.fixed.emplace(name);
  if (request.base.strategy == kAutoStrategy) request.fixed.erase("strategy");
  return request;
}

absl::StatusOr<std::vector<Given>> WithSettings(const TuneSpace& space, const TunePoint& point,
                                                std::vector<Given> flags) {
  const Origin chosen = {.from = Origin::From::kChosen, .key = "ftc tune", .file = {}, .line = 0};
  for (const auto& [name, text] : ft::compiler::settingsAt(space, point)) {
    const size_t setting = SettingIndex(name);
    const auto was = std::find_if(flags.begin(), flags.end(),
                                  [setting](const Given& given) { return given.setting == setting; });
    const std::optional<Given> asked = was == flags.end() ? std::nullopt : std::optional<Given>(*was);
    FT_RETURN_IF_ERROR(SetFlag(name, text, flags));
    const bool is_asked = asked && asked->text == flags.back().text;
    flags.back().origin = is_asked ? asked->origin : chosen;
  }
  return flags;
}

std::string NothingFits(const TuneSpace& space, const TuneResult& result) {
  if (result.beside.empty()) return "nothing of the table fits";
  const ft::compiler::TuneLayout& layout = space.layouts[result.beside[0].point.layout];
  return fmt::format("what fits of the table would change bits; --strategy={} --mesh={} chooses those bits",
                     layout.strategy, ft::MeshText(layout.mesh));
}

bool HasPlace(const absl::Status& status) { return absl::StrContains(status.message(), ": error: "); }

namespace {

// "3.00 MiB of a rank of h100 ", or what else limits; empty where nothing does.
std::string LimitText(const TuneRequest& request, const Effective& effective) {
  const uint64_t bytes = request.memoryBytes;
  if (bytes == 0) return "";
  if (bytes == CompileOptionsOf(effective.configuration).memoryBudget)
    return fmt::format("--memory-budget={} ", ft::ShortBytes(bytes));
  return fmt::format("{} of a rank of {} ", ft::ShortBytes(bytes), request.base.target.name());
}

// Flags that choose what was not given.
absl::StatusOr<std::vector<Given>> Choose(const std::string& model, const Effective& effective,
                                          const std::vector<Given>& flags) {
  TuneRequest request = TuneRequestOf(model, effective, Decided::kByFlagsAndFile, 0);
  // A compilation is of the batch that the model, or the user, has.
  request.fixed.insert({"batch", "micro_steps"});
  request.globalBatch = 0;
  FT_ASSIGN_OR_RETURN(const TuneSpace space, ft::compiler::tuneSpaceOf(request));
  FT_RETURN_IF_ERROR(CheckGlobalBatch(effective, space.splits[0].batch));
  FT_ASSIGN_OR_RETURN(const TuneResult result,
                      ft::compiler::searchTuneSpace(request, space, [](double, const std::string&) {}));
  if (!result.beside.empty() && result.best.empty())
    return absl::InvalidArgumentError("--strategy=auto: " + NothingFits(space, result));
  if (result.best.empty())
    return absl::InvalidArgumentError(fmt::format(
        "--strategy=auto: nothing fits {}with {} rank{}; ftc tune says by how much",
        LimitText(request, effective), request.base.worldSize, request.base.worldSize == 1 ? "" : "s"));
  std::string text;
  for (const auto& [name, value] : ft::compiler::settingsAt(space, result.best[0].point))
    if (name != "batch" && name != "micro_steps") text += fmt::format(" {}={}", name, value);
  ft::PrintError("ftc: --strategy=auto chose" + text);
  return WithSettings(space, result.best[0].point, flags);
}

}  // namespace

absl::StatusOr<std::variant<Effective, Refusal>> ConfigureFor(const std::string& model,
                                                              const std::string& config,
                                                              const std::vector<Given>& flags) {
  FT_ASSIGN_OR_RETURN(auto configured, Configure(config, flags));
  const auto* effective = std::get_if<Effective>(&configured);
  if (effective == nullptr || effective->configuration.options.strategy != kAutoStrategy) return configured;
  const absl::StatusOr<std::vector<Given>> chosen = Choose(model, *effective, flags);
  if (absl::IsInvalidArgument(chosen.status()) && !HasPlace(chosen.status()))
    return Refusal{std::string(chosen.status().message()), false};
  FT_RETURN_IF_ERROR(chosen.status());
  return Configure(config, *chosen);
}

}  // namespace ftc
