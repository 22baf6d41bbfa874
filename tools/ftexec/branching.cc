#include "tools/ftexec/branching.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"

namespace ft {
namespace {

std::string These(const Departure& departure) { return departure.left.size() == 1 ? "it" : "they"; }

}  // namespace

std::optional<BranchPoint> BranchPointIn(const std::string& folder, const CheckpointReader& resumed) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path = fs::canonical(resumed.folder(), error);  // a link may lead into the folder
  if (error || !fs::equivalent(path.parent_path(), folder, error) || error) return std::nullopt;
  const proto::Manifest& manifest = resumed.manifest();
  const uint64_t steps = manifest.position().steps();
  if (path.filename() != CheckpointName(steps)) return std::nullopt;
  return BranchPoint{.branch = manifest.branch(), .step = steps};
}

absl::StatusOr<Departure> DepartureIn(const std::string& folder, const std::optional<BranchPoint>& from) {
  FT_ASSIGN_OR_RETURN(const std::vector<BranchedCheckpoint> there, ListBranches(folder));
  return Depart(there, from);
}

std::string DepartureText(const std::string& folder, const Departure& departure) {
  return fmt::format(
      "'{}' has checkpoints that this run does not go on from, of {}; when its first one is "
      "written, {} move{} aside",
      folder, StepsText(departure.left), These(departure), departure.left.size() == 1 ? "s" : "");
}

std::string AsideText(const Departure& departure, const std::string& aside) {
  return fmt::format("the checkpoints of {}, which this run does not go on from, are in '{}' now",
                     StepsText(departure.left), aside);
}

}  // namespace ft
