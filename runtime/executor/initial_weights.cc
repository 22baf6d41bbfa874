#include "runtime/executor/initial_weights.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/compare_config.h"
#include "runtime/checkpoint/state/peft.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/plan/plan_facts.h"

namespace ft {
namespace {

// Of what config.json says: a message of more is read by nobody, and cut where it is printed.
constexpr size_t kShownBytes = 2500;

std::vector<WantedTensor> Wanted(const proto::Plan& plan) {
  const AdapterParameters adapters(plan.lora());
  std::vector<WantedTensor> wanted;
  for (const proto::Parameter& parameter : plan.parameters()) {
    WantedTensor& tensor = wanted.emplace_back();
    tensor.name = parameter.name();
    tensor.shape.assign(parameter.shape().begin(), parameter.shape().end());
    tensor.aliases.assign(parameter.aliases().begin(), parameter.aliases().end());
    for (std::string& alias : HuggingFaceAliases(parameter.name()))
      tensor.aliases.push_back(std::move(alias));
    tensor.stored_as = parameter.stored_as();
    tensor.may_be_missing = adapters.Has(tensor.name);
  }
  return wanted;
}

struct ConfigFile {
  std::string path;
  bool of_folder = false;  // it is part of what the user named
  bool exists = false;
};

ConfigFile ConfigBeside(const std::string& path) {
  std::error_code ignored;  // what cannot be examined is reported when it is opened
  ConfigFile file;
  file.of_folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path folder =
      file.of_folder ? std::filesystem::path(path) : std::filesystem::path(path).parent_path();
  file.path = (folder / "config.json").string();
  file.exists = std::filesystem::exists(file.path, ignored);
  return file;
}

// Adds what config.json says against the model to `problems`, and what else is to be said to `notes`.
absl::Status CheckConfig(const proto::Plan& plan, const std::string& path, std::vector<std::string>& problems,
                         std::vector<std::string>& notes) {
  const ConfigFile file = ConfigBeside(path);
  FT_ASSIGN_OR_RETURN(const std::optional<ModelFacts> facts, FactsOf(plan));
  if (!file.exists) {
    if (file.of_folder)
      notes.push_back(absl::StrCat("'", path, "' has no config.json: only tensors were compared"));
    return absl::OkStatus();
  }
  if (!facts.has_value()) {
    notes.push_back(
        absl::StrCat("'", file.path, "' was not compared: the model does not say its facts (ft.facts)"));
    return absl::OkStatus();
  }
  FT_ASSIGN_OR_RETURN(ConfigComparison compared,
                      CompareConfig(file.path, *facts, static_cast<int64_t>(plan.seq_len())));
  if (compared.no_model_type && !file.of_folder) {
    notes.push_back(absl::StrCat("'", file.path, "' was not compared: it does not say a model_type"));
    return absl::OkStatus();
  }
  for (const std::string& note : compared.notes)
    notes.push_back(absl::StrCat("'", file.path, "': this run ", note));
  if (compared.differences.empty()) return absl::OkStatus();
  compared.differences.front() = absl::StrCat("'", file.path, "': ", compared.differences.front());
  size_t bytes = 0, shown = 0;
  for (std::string& difference : compared.differences) {
    bytes += difference.size();
    if (shown > 0 && bytes > kShownBytes) break;
    problems.push_back(std::move(difference));
    ++shown;
  }
  if (const size_t more = compared.differences.size() - shown; more > 0)
    problems.push_back(absl::StrCat("and ", more, " more in config.json"));
  return absl::OkStatus();
}

// Some adapters of many are those of other modules.
void CheckAdapters(const proto::Plan& plan, const std::string& path, const InitialWeights& weights,
                   std::vector<std::string>& problems) {
  const AdapterParameters adapters(plan.lora());
  int found = 0, missing = 0;
  for (int p = 0; p < plan.parameters_size(); ++p) {
    if (!adapters.IsOfAdapter(plan.parameters(p).name())) continue;
    (weights.entries[static_cast<size_t>(p)].empty() ? missing : found) += 1;
  }
  if (found > 0 && missing > 0)
    problems.push_back(absl::StrCat("'", path, "' has ", found, " of the ", found + missing,
                                    " tensors of the adapters; all or none can be there"));
}

// Those that PEFT saves.
std::vector<WantedTensor> WantedAdapters(const proto::Plan& plan) {
  const AdapterParameters adapters(plan.lora());
  std::vector<WantedTensor> wanted;
  for (const proto::Parameter& parameter : plan.parameters()) {
    if (!adapters.Has(parameter.name())) continue;
    wanted.push_back(
        {PeftName(plan.facts(), parameter.name()), {parameter.shape().begin(), parameter.shape().end()}, {}});
  }
  return wanted;
}

}  // namespace

absl::StatusOr<InitialWeights> OpenInitialAdapters(const proto::Plan& plan, const std::string& path) {
  if (!plan.has_lora())
    return absl::InvalidArgumentError("the plan has no adapters: ftc compile --lora makes one that has");
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  FT_RETURN_IF_ERROR(CheckPeftConfig((folder / kPeftConfigFile).string(), plan.lora()));
  InitialWeights weights;
  FT_ASSIGN_OR_RETURN(weights.reader,
                      SafetensorsReader::Open(is_folder ? (folder / kPeftWeightsFile).string() : path));
  WeightMatch match = MatchWeights(*weights.reader, WantedAdapters(plan));
  if (!match.problems.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("these are not the adapters of the plan: ", absl::StrJoin(match.problems, "; ")));
  const AdapterParameters adapters(plan.lora());
  auto next = match.entries.begin();
  for (const proto::Parameter& parameter : plan.parameters())
    weights.entries.push_back(adapters.Has(parameter.name()) ? std::move(*next++)
                                                             : decltype(match.entries)::value_type());
  return weights;
}

absl::StatusOr<InitialWeights> OpenInitialWeights(const proto::Plan& plan, const std::string& path,
                                                  absl::Span<const std::string> allow_unused) {
  InitialWeights weights;
  std::vector<std::string> problems;
  FT_ASSIGN_OR_RETURN(weights.reader, SafetensorsReader::Open(path));
  FT_RETURN_IF_ERROR(CheckConfig(plan, path, problems, weights.notes));
  WeightMatch match = MatchWeights(*weights.reader, Wanted(plan), allow_unused);
  std::move(match.problems.begin(), match.problems.end(), std::back_inserter(problems));
  weights.entries = std::move(match.entries);
  if (match.problems.empty()) CheckAdapters(plan, path, weights, problems);
  if (!problems.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("these are not the weights of the plan's model: ", absl::StrJoin(problems, "; ")));
  if (!match.note.empty()) weights.notes.push_back(std::move(match.note));
  return weights;
}

std::vector<std::string> StartingAnew(const proto::Plan& plan, absl::Span<const InitialWeights> sources) {
  std::vector<std::string> names;
  for (int p = 0; p < plan.parameters_size(); ++p) {
    const auto has = [&](const InitialWeights& source) {
      return !source.entries[static_cast<size_t>(p)].empty();
    };
    if (std::ranges::none_of(sources, has)) names.push_back(plan.parameters(p).name());
  }
  return names;
}

}  // namespace ft
