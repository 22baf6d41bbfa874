#include "tools/ftexec/initial_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/peft.h"
#include "runtime/checkpoint/unused_tensors.h"
#include "runtime/executor/initial_weights.h"

namespace ft {
namespace {

// What no file has is drawn; of what is not trained, adapters alone can be missing, which then add nothing.
absl::Status NoteMissing(const Flags& flags, Job& job) {
  const std::vector<std::string> anew = StartingAnew(job.plan(), job.init);
  if (anew.empty()) return absl::OkStatus();
  job.init_draws = true;
  const std::string missing = absl::StrCat("'", flags.init, "' does not have ", NamesText(anew));
  const AdapterParameters adapters(job.plan().lora());
  const bool are_adapters = std::all_of(anew.begin(), anew.end(),
                                        [&](const std::string& name) { return adapters.IsOfAdapter(name); });
  if (!flags.trains() && !are_adapters) return absl::InvalidArgumentError(missing);
  job.init.front().notes.push_back(missing + (flags.trains() ? ": they start anew" : ": they add nothing"));
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeInit(const Flags& flags, Job& job) {
  if (flags.init.empty()) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(InitialWeights init, OpenInitialWeights(job.plan(), flags.init, flags.allow_unused));
  job.init.push_back(std::move(init));
  if (!flags.adapter.empty()) {
    FT_ASSIGN_OR_RETURN(InitialWeights adapter, OpenInitialAdapters(job.plan(), flags.adapter));
    job.init.push_back(std::move(adapter));
  }
  return NoteMissing(flags, job);
}

std::string AdapterFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored)
             ? (std::filesystem::path(path) / kPeftWeightsFile).string()
             : path;
}

}  // namespace ft
