#include "compiler/tune/family_search.h"

#include "compiler/tune/parallel.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <optional>

#include "runtime/base/status_macros.h"

namespace ft::compiler {

namespace {

/// Compiled before what is worth trying is settled anew. Not the number of cores: an answer does not depend
/// on that.
constexpr size_t kRound = 16;
/// Of the memory that there is, what a schedule or a budget may still fit into it. A guess.
constexpr double kNear = 1.25;
/// Families that fit as they are and of which recomputation is tried all the same.
constexpr size_t kRecomputed = 4;

} // namespace

TuneFamilySearch::TuneFamilySearch(const TuneRequest &request, const TuneSpace &space, TuneTrials &trials,
                                   const TuneProgress &progress)
    : request(request), space(space), trials(trials), progress(progress), steps(space),
      all(tuneFamiliesOf(space)) {}

absl::Status TuneFamilySearch::run() {
  FT_RETURN_IF_ERROR(probe());
  FT_RETURN_IF_ERROR(descend());
  return tryRecomputation();
}

/// Estimates points of families, and takes note of what fits.
absl::Status TuneFamilySearch::estimate(const std::vector<Open> &opens) {
  std::vector<TuneTrial> found(opens.size());
  FT_RETURN_IF_ERROR(inParallel(opens.size(), [&](size_t i) -> absl::Status {
    FT_ASSIGN_OR_RETURN(found[i], trials.estimate(opens[i].family->at(opens[i].choice)));
    return absl::OkStatus();
  }));
  for (size_t i = 0; i < opens.size(); ++i)
    note(*opens[i].family, opens[i].choice, found[i]);
  return absl::OkStatus();
}

absl::Status TuneFamilySearch::estimateInRounds(const std::vector<Open> &opens) {
  for (size_t begin = 0; begin < opens.size(); begin += kRound)
    FT_RETURN_IF_ERROR(estimate({opens.begin() + static_cast<long>(begin),
                                 opens.begin() + static_cast<long>(std::min(opens.size(), begin + kRound))}));
  return absl::OkStatus();
}

void TuneFamilySearch::note(TuneFamily &family, const TuneChoice &choice, const TuneTrial &trial) {
  family.tried[choice] = trial;
  if (!trial.refused.empty())
    return;
  double &least = kernels.try_emplace({family.origin.split, choice.remat}, kNever).first->second;
  least = std::min(least, trial.kernelSeconds);
  if (!fits(trial, request))
    return;
  family.fitting.insert(choice);
  if (isChosenFrom(family))
    times.insert(trial.seconds);
}

/// Of every family what fits first; of one of which nothing does by little, with the schedule that takes the
/// least memory.
absl::Status TuneFamilySearch::probe() {
  progress(0, "what fits");
  FT_RETURN_IF_ERROR(probeAll());
  const std::optional<size_t> frugal = frugalSchedule();
  if (!frugal)
    return absl::OkStatus();
  bool again = false;
  for (TuneFamily &family : all) {
    TunePoint point = family.origin;
    point.schedule = *frugal;
    if (!family.fitting.empty() || family.origin.schedule == *frugal || !isDistinct(space, point) ||
        llvm::none_of(family.tried, [&](const auto &tried) { return isNear(tried.second); }))
      continue;
    family.origin = point;
    family.tried.clear();
    again = true;
  }
  return again ? probeAll() : absl::OkStatus();
}

/// The first choice of every family and, where that does not fit, the last ones until one does.
absl::Status TuneFamilySearch::probeAll() {
  std::vector<TuneChoice> choices = {TuneChoice()};
  llvm::append_range(choices, steps.lasts());
  for (const TuneChoice &choice : choices) {
    std::vector<Open> opens;
    for (TuneFamily &family : all)
      if (family.fitting.empty() && family.tried.count(choice) == 0 && mayFit(family, choice))
        opens.push_back({&family, choice, 0});
    FT_RETURN_IF_ERROR(estimateInRounds(opens));
  }
  return absl::OkStatus();
}

/// That gathers nothing ahead or, where the table has none of those, weighs it.
std::optional<size_t> TuneFamilySearch::frugalSchedule() const {
  for (const char *prefetch : {"none", "auto"})
    for (size_t schedule = 1; schedule < space.schedules.size(); ++schedule)
      if (space.schedules[schedule].prefetch == prefetch)
        return schedule;
  return std::nullopt;
}

bool TuneFamilySearch::isNear(const TuneTrial &trial) const {
  return trial.refused.empty() && request.memoryBytes != 0 && trial.deviceBytes > request.memoryBytes &&
         static_cast<double>(trial.deviceBytes) <= kNear * static_cast<double>(request.memoryBytes) &&
         (request.hostBytes == 0 || trial.hostBytes <= request.hostBytes);
}

/// Not what takes more of a device's memory than what is too large there.
bool TuneFamilySearch::mayFit(const TuneFamily &family, const TuneChoice &choice) const {
  return llvm::none_of(family.tried, [&](const auto &tried) {
    const auto &[more, trial] = tried;
    return trial.refused.empty() && request.memoryBytes != 0 && trial.deviceBytes > request.memoryBytes &&
           steps.adds(choice, more);
  });
}

/// Seconds that no point with this split and recomputation stays below, as far as that is known.
double TuneFamilySearch::boundOf(size_t split, size_t remat) const {
  for (size_t known : {remat, size_t{0}}) {
    auto found = kernels.find({split, known});
    if (found != kernels.end())
      return found->second;
  }
  return 0;
}

double TuneFamilySearch::leastKernelSeconds() const {
  double least = kNever;
  for (const auto &[key, seconds] : kernels)
    least = std::min(least, seconds);
  return least;
}

/// The time of the last point that is still of interest.
double TuneFamilySearch::threshold() const {
  return times.size() < kScheduled ? kNever : *std::next(times.begin(), kScheduled - 1);
}

std::vector<TuneFamilySearch::Open> TuneFamilySearch::openChoices() {
  std::vector<Open> opens;
  const double last = threshold(), first = times.empty() ? kNever : *times.begin();
  for (TuneFamily &family : all) {
    if (family.fitting.empty())
      continue;
    // What is not chosen is of interest where it may be the fastest.
    const double limit = isChosenFrom(family) ? last : first;
    for (const TuneChoice &choice : steps.choices())
      if (family.tried.count(choice) == 0 && !steps.isDominated(family, choice) &&
          boundOf(family.origin.split, choice.remat) < limit)
        opens.push_back({&family, choice, boundOf(family.origin.split, choice.remat)});
  }
  llvm::stable_sort(opens, [](const Open &a, const Open &b) { return a.bound < b.bound; });
  return opens;
}

/// Between the first choice, which does not fit, and the last: by what kernels alone take.
absl::Status TuneFamilySearch::descend() {
  std::vector<Open> opens = openChoices();
  const double whole = static_cast<double>(opens.size());
  while (!opens.empty()) {
    progress(0.3 + 0.3 * (1 - static_cast<double>(opens.size()) / std::max(1.0, whole)),
             "recomputation and offload");
    opens.resize(std::min(opens.size(), kRound));
    FT_RETURN_IF_ERROR(estimate(opens));
    opens = openChoices();
  }
  return absl::OkStatus();
}

/// Kernels that compute a value again may read less than those that keep it: of the fastest that fit as they
/// are, other recomputation with the same offload.
absl::Status TuneFamilySearch::tryRecomputation() {
  std::vector<Open> opens;
  std::vector<TuneCandidate> fastest = candidates(true);
  fastest.resize(std::min(fastest.size(), kRecomputed));
  for (TuneFamily &family : all)
    for (const TuneCandidate &one : fastest) {
      const TuneChoice kept{one.point.remat, one.point.offload};
      if (family.at(kept) != one.point)
        continue;
      for (const TuneChoice &choice : steps.choices())
        if (choice.offload == kept.offload && steps.adds(kept, choice) && family.tried.count(choice) == 0)
          opens.push_back({&family, choice, 0});
    }
  return estimateInRounds(opens);
}

bool TuneFamilySearch::reopen(const TunePoint &point, const TuneTrial &trial) {
  const TuneChoice choice{point.remat, point.offload};
  for (TuneFamily &family : all) {
    if (family.at(choice) != point || family.fitting.erase(choice) == 0)
      continue;
    const auto thought = times.find(family.tried[choice].seconds);
    if (thought != times.end())
      times.erase(thought);
    family.tried[choice] = trial;
    return true;
  }
  return false;
}

absl::StatusOr<bool> TuneFamilySearch::openDominated() {
  std::vector<Open> opens;
  for (TuneFamily &family : all)
    for (const TuneChoice &choice : steps.choices())
      if (isChosenFrom(family) && !family.fitting.empty() && family.tried.count(choice) == 0)
        opens.push_back({&family, choice, boundOf(family.origin.split, choice.remat)});
  llvm::stable_sort(opens, [](const Open &a, const Open &b) { return a.bound < b.bound; });
  opens.resize(std::min(opens.size(), kRound));
  FT_RETURN_IF_ERROR(estimate(opens));
  return !opens.empty();
}

std::vector<TuneCandidate> TuneFamilySearch::candidates(bool chosen) const {
  std::vector<TuneCandidate> found;
  for (const TuneFamily &family : all) {
    if (isChosenFrom(family) != chosen)
      continue;
    for (const TuneChoice &choice : family.fitting)
      found.push_back({family.at(choice), family.tried.at(choice).seconds});
  }
  llvm::sort(found);
  return found;
}

std::vector<TuneCandidate> TuneFamilySearch::near() const {
  std::vector<TuneCandidate> found;
  for (const TuneFamily &family : all)
    for (const auto &[choice, trial] : family.tried)
      if (isChosenFrom(family) && isNear(trial))
        found.push_back({family.at(choice), trial.seconds});
  llvm::sort(found);
  return found;
}

} // namespace ft::compiler
