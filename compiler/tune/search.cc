#include "compiler/tune/search.h"

#include "compiler/tune/exhaustive.h"
#include "compiler/tune/families.h"
#include "compiler/tune/parallel.h"
#include "compiler/tune/rejections.h"
#include "compiler/tune/rows.h"

#include <algorithm>
#include <limits>

#include "runtime/base/status_macros.h"

namespace ft::compiler {

namespace {

/// Points whose schedules are tried, and points of which whole models are compiled at most.
constexpr size_t kScheduled = 24;
constexpr size_t kMostExact = 48;
/// Compiled before what is worth trying is settled anew. Not the number of cores: an answer does not depend
/// on that.
constexpr size_t kRound = 16;
constexpr size_t kExactRound = 8;
/// A better schedule than the first may gain, and an estimate be off by.
constexpr double kGain = 0.90;
constexpr double kOff = 0.98;
/// Families of which budgets are solved, and points with which prefetch=auto is.
constexpr size_t kBudgets = 6;
constexpr size_t kAutos = 2;
/// Of those that would change bits.
constexpr size_t kBeside = 2;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What is known of a point, exactly or about.
struct Candidate {
  TunePoint point;
  double seconds = kInfinity;

  auto operator<=>(const Candidate &other) const {
    return std::tie(seconds, point) <=> std::tie(other.seconds, other.point);
  }
  bool operator==(const Candidate &other) const = default;
};

class Search {
public:
  Search(const TuneRequest &request, const TuneSpace &space, const TuneProgress &progress)
      : request(request), space(space), ladder(space), trials(request, space), progress(progress),
        families(tuneFamiliesOf(space)) {}

  absl::StatusOr<TuneResult> run() {
    FT_RETURN_IF_ERROR(probe());
    FT_RETURN_IF_ERROR(descend());
    FT_RETURN_IF_ERROR(trySchedules());
    FT_RETURN_IF_ERROR(compileWhole());
    return result();
  }

private:
  struct Open {
    TuneFamily *family;
    TuneChoice choice;
    double bound;
  };

  bool chosenFrom(const TuneFamily &family) const { return !space.layouts[family.origin.layout].changesBits; }

  /// Estimates points of families, and takes note of what fits.
  absl::Status estimate(const std::vector<Open> &opens) {
    std::vector<TuneTrial> found(opens.size());
    FT_RETURN_IF_ERROR(inParallel(opens.size(), [&](size_t i) -> absl::Status {
      FT_ASSIGN_OR_RETURN(found[i], trials.estimate(opens[i].family->at(opens[i].choice)));
      return absl::OkStatus();
    }));
    for (size_t i = 0; i < opens.size(); ++i)
      note(*opens[i].family, opens[i].choice, found[i]);
    return absl::OkStatus();
  }

  void note(TuneFamily &family, const TuneChoice &choice, const TuneTrial &trial) {
    family.tried[choice] = trial;
    if (!trial.refused.empty())
      return;
    double &least = kernels.try_emplace({family.origin.split, choice.remat}, kInfinity).first->second;
    least = std::min(least, trial.kernelSeconds);
    if (!fits(trial, request))
      return;
    family.fitting.insert(choice);
    if (chosenFrom(family))
      times.insert(trial.seconds);
  }

  /// The first choice of every family and, where that does not fit, the last ones until one does.
  absl::Status probe() {
    progress(0, "what fits");
    std::vector<TuneChoice> choices = {TuneChoice()};
    const std::vector<TuneChoice> lasts = ladder.lasts();
    choices.insert(choices.end(), lasts.begin(), lasts.end());
    for (const TuneChoice &choice : choices) {
      std::vector<Open> opens;
      for (TuneFamily &family : families)
        if (family.fitting.empty() && family.tried.count(choice) == 0 && mayFit(family, choice))
          opens.push_back({&family, choice, 0});
      for (size_t begin = 0; begin < opens.size(); begin += kRound)
        FT_RETURN_IF_ERROR(
            estimate({opens.begin() + static_cast<long>(begin),
                      opens.begin() + static_cast<long>(std::min(opens.size(), begin + kRound))}));
    }
    return absl::OkStatus();
  }

  /// Not what takes more of a device's memory than what is too large there.
  bool mayFit(const TuneFamily &family, const TuneChoice &choice) const {
    return std::none_of(family.tried.begin(), family.tried.end(), [&](const auto &tried) {
      const auto &[more, trial] = tried;
      return trial.refused.empty() && request.memoryBytes != 0 && trial.deviceBytes > request.memoryBytes &&
             ladder.adds(choice, more);
    });
  }

  /// Seconds that no point with this split and recomputation stays below, as far as that is known.
  double boundOf(size_t split, size_t remat) const {
    for (size_t known : {remat, size_t{0}}) {
      auto found = kernels.find({split, known});
      if (found != kernels.end())
        return found->second;
    }
    return 0;
  }

  /// The time of the last point that is still of interest.
  double threshold() const {
    if (times.size() < kScheduled)
      return kInfinity;
    return *std::next(times.begin(), kScheduled - 1);
  }

  std::vector<Open> openChoices() {
    std::vector<Open> opens;
    const double last = threshold(), first = times.empty() ? kInfinity : *times.begin();
    for (TuneFamily &family : families) {
      if (family.fitting.empty())
        continue;
      // What is not chosen is of interest where it may be the fastest.
      const double limit = chosenFrom(family) ? last : first;
      for (const TuneChoice &choice : ladder.choices())
        if (family.tried.count(choice) == 0 && !ladder.isDominated(family, choice) &&
            boundOf(family.origin.split, choice.remat) < limit)
          opens.push_back({&family, choice, boundOf(family.origin.split, choice.remat)});
    }
    std::stable_sort(opens.begin(), opens.end(),
                     [](const Open &a, const Open &b) { return a.bound < b.bound; });
    return opens;
  }

  /// Between the first choice, which does not fit, and the last: by what kernels alone take.
  absl::Status descend() {
    std::vector<Open> opens = openChoices();
    const double all = static_cast<double>(opens.size());
    while (!opens.empty()) {
      progress(0.3 + 0.3 * (1 - static_cast<double>(opens.size()) / std::max(1.0, all)),
               "recomputation and offload");
      opens.resize(std::min(opens.size(), kRound));
      FT_RETURN_IF_ERROR(estimate(opens));
      opens = openChoices();
    }
    return absl::OkStatus();
  }

  /// All that fits and nothing in its family makes needless, by its estimate.
  std::vector<Candidate> candidates(bool chosen) const {
    std::vector<Candidate> found;
    for (const TuneFamily &family : families) {
      if (chosenFrom(family) != chosen)
        continue;
      for (const TuneChoice &choice : family.fitting)
        if (!ladder.isDominated(family, choice))
          found.push_back({family.at(choice), family.tried.at(choice).seconds});
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  bool isByCost(const TunePoint &point) const { return space.schedules[point.schedule].prefetch == "auto"; }

  absl::Status trySchedules() {
    progress(0.6, "schedules");
    std::vector<Candidate> firsts = candidates(true);
    const double limit = firsts.empty() ? 0 : firsts[std::min(firsts.size(), kShown) - 1].seconds;
    if (firsts.size() > kScheduled)
      firsts.resize(kScheduled);
    queue = firsts;
    std::vector<Candidate> others;
    size_t autos = 0;
    for (const Candidate &first : firsts) {
      if (first.seconds * kGain > limit)
        break;
      for (size_t schedule = 1; schedule < space.schedules.size(); ++schedule) {
        Candidate other = first;
        other.point.schedule = schedule;
        if (!isDistinct(space, other.point))
          continue;
        // Settled by compiling whole models, a few.
        const bool whole = isByCost(other.point) && trials.leavesOutLayers();
        if (whole && autos++ < kAutos)
          queue.push_back(other);
        if (!whole)
          others.push_back(other);
      }
    }
    FT_RETURN_IF_ERROR(inParallel(others.size(), [&](size_t i) -> absl::Status {
      FT_ASSIGN_OR_RETURN(const TuneTrial trial, trials.estimate(others[i].point));
      others[i].seconds = fits(trial, request) ? trial.seconds : kInfinity;
      return absl::OkStatus();
    }));
    for (const Candidate &other : others)
      if (other.seconds < kInfinity)
        queue.push_back(other);
    addBudgets();
    std::sort(queue.begin(), queue.end());
    return absl::OkStatus();
  }

  /// Where a family does not fit as it is and does with recomputation of all layers, a budget lies between:
  /// about where a line from one to the other meets the memory.
  void addBudgets() {
    if (!ladder.budget())
      return;
    std::vector<Candidate> budgets;
    for (const TuneFamily &family : families)
      for (size_t offload = 0; offload < space.offloads.size() && chosenFrom(family); ++offload) {
        const TuneTrial *most = nullptr, *least = nullptr;
        for (const auto &[choice, trial] : family.tried) {
          if (choice.offload != offload || !trial.refused.empty())
            continue;
          if (choice.remat == 0)
            most = family.fitting.count(choice) == 0 ? &trial : nullptr;
          else if (family.fitting.count(choice) == 0)
            continue;
          else if (least == nullptr || trial.seconds < least->seconds)
            least = &trial;
        }
        if (most == nullptr || least == nullptr || most->seconds >= least->seconds)
          continue;
        const double over = static_cast<double>(most->deviceBytes) - static_cast<double>(request.memoryBytes);
        const double between =
            static_cast<double>(most->deviceBytes) - static_cast<double>(least->deviceBytes);
        const double part = std::clamp(between > 0 ? over / between : 1.0, 0.0, 1.0);
        const double about = most->seconds + part * (least->seconds - most->seconds);
        budgets.push_back({family.at({*ladder.budget(), offload}), about});
        // Where copies cost less than computing again, a budget takes some of both.
        for (size_t both = offload + 1; both < space.offloads.size(); ++both)
          if (ladder.addsActivations(offload, both))
            budgets.push_back({family.at({*ladder.budget(), both}), about});
      }
    std::sort(budgets.begin(), budgets.end());
    if (budgets.size() > kBudgets)
      budgets.resize(kBudgets);
    for (const Candidate &budget : budgets)
      if (!isQueued(budget))
        queue.push_back(budget);
  }

  bool isQueued(const Candidate &candidate) const {
    return std::any_of(queue.begin(), queue.end(),
                       [&](const Candidate &one) { return one.point == candidate.point; });
  }

  /// Compiles whole models until none that is left can be among the best. Where one is larger than its
  /// estimate and does not fit, choices that it made needless are open again.
  absl::Status compileWhole() {
    size_t begin = 0;
    while (begin < queue.size() && begin < kMostExact) {
      const std::vector<TuneRow> best = bestOf(exact);
      if (best.size() == kShown && queue[begin].seconds * kOff > best.back().trial.seconds)
        break;
      const size_t end = std::min({queue.size(), kMostExact, begin + kExactRound});
      progress(0.7 +
                   0.3 * static_cast<double>(begin) / static_cast<double>(std::min(queue.size(), kMostExact)),
               "whole models");
      std::vector<TuneTrial> found(end - begin);
      FT_RETURN_IF_ERROR(inParallel(found.size(), [&](size_t i) -> absl::Status {
        FT_ASSIGN_OR_RETURN(found[i], trials.exact(queue[begin + i].point));
        return absl::OkStatus();
      }));
      bool reopened = false;
      for (size_t i = 0; i < found.size(); ++i) {
        if (fits(found[i], request))
          exact.push_back({queue[begin + i].point, found[i]});
        else if (queue[begin + i].point.schedule == 0)
          reopened |= reopen(queue[begin + i].point, found[i]);
      }
      begin = end;
      if (reopened)
        FT_RETURN_IF_ERROR(queueReopened(begin));
    }
    return compileBeside();
  }

  /// Whether a point, which takes `trial`, was thought to fit.
  bool reopen(const TunePoint &point, const TuneTrial &trial) {
    const TuneChoice choice{point.remat, point.offload};
    for (TuneFamily &family : families) {
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

  /// Queues, from `begin` on, what has not been queued.
  absl::Status queueReopened(size_t begin) {
    FT_RETURN_IF_ERROR(probe());
    FT_RETURN_IF_ERROR(descend());
    const std::vector<Candidate> now = candidates(true);
    for (size_t i = 0; i < now.size() && i < kScheduled; ++i)
      if (!isQueued(now[i]))
        queue.push_back(now[i]);
    addBudgets();
    std::sort(queue.begin() + static_cast<long>(begin), queue.end());
    return absl::OkStatus();
  }

  /// The best of those that would change bits, where one is about as fast.
  absl::Status compileBeside() {
    for (const Candidate &other : candidates(false)) {
      if (beside.size() >= kBeside)
        break;
      FT_ASSIGN_OR_RETURN(const TuneTrial trial, trials.exact(other.point));
      if (fits(trial, request))
        beside.push_back({other.point, trial});
    }
    return absl::OkStatus();
  }

  TuneResult result() {
    TuneResult result{.best = bestOf(exact),
                      .front = frontOf(exact),
                      .beside = bestOf(beside),
                      .compilations = trials.compilations()};
    result.boundSeconds = kInfinity;
    for (const auto &[key, seconds] : kernels)
      result.boundSeconds = std::min(result.boundSeconds, seconds);
    for (const TuneRow &row : exact)
      result.boundSeconds = std::min(result.boundSeconds, row.trial.kernelSeconds);
    if (result.boundSeconds == kInfinity)
      result.boundSeconds = 0;
    result.rejections = rejectionsOf(request, space, ladder, families);
    progress(1, "");
    return result;
  }

  const TuneRequest &request;
  const TuneSpace &space;
  TuneLadder ladder;
  TuneTrials trials;
  const TuneProgress &progress;
  std::vector<TuneFamily> families;
  std::map<std::pair<size_t, size_t>, double>
      kernels;                 // least seconds of kernels alone, by split and recomputation
  std::multiset<double> times; // of all that fits
  std::vector<Candidate> queue;
  std::vector<TuneRow> exact, beside;
};

} // namespace

absl::StatusOr<TuneResult> searchTuneSpace(const TuneRequest &request, const TuneSpace &space,
                                           const TuneProgress &progress) {
  if (request.exhaustive)
    return searchWholeTuneSpace(request, space, progress);
  return Search(request, space, progress).run();
}

} // namespace ft::compiler
