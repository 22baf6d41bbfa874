#include "compiler/tune/search.h"

#include "compiler/tune/exhaustive.h"
#include "compiler/tune/family_search.h"
#include "compiler/tune/parallel.h"
#include "compiler/tune/rejections.h"
#include "compiler/tune/rows.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

#include "runtime/base/status_macros.h"

namespace ft::compiler {

namespace {

/// Of models whose layers are left out of estimates, points that are compiled whole, once enough are found to
/// be shown; twice as many where they are not.
constexpr size_t kMostExact = 48;
/// Compiled before what is worth trying is settled anew.
constexpr size_t kExactRound = 8;
/// A better schedule than the first may gain, and an estimate be off by.
constexpr double kGain = 0.90;
constexpr double kOff = 0.98;
/// Of those models, too: budgets that are solved, points with which prefetch=auto is, and points too large
/// that are tried with other schedules.
constexpr size_t kBudgets = 6;
constexpr size_t kAutos = 2;
constexpr size_t kNearPoints = 4;
/// Of other models the last of these.
constexpr size_t kMostNearPoints = 64;
/// Rows with a budget of which other schedules are compiled.
constexpr size_t kBudgetRows = 2;
/// Of those that would change bits.
constexpr size_t kBeside = 2;
/// Compiled at a time, and times, while too few are found.
constexpr size_t kFill = 64, kFills = 4;

class Search {
public:
  Search(const TuneRequest &request, const TuneSpace &space, const TuneProgress &progress)
      : request(request), space(space), trials(request, space), progress(progress),
        search(request, space, trials, progress) {}

  absl::StatusOr<TuneResult> run() {
    FT_RETURN_IF_ERROR(search.run());
    FT_RETURN_IF_ERROR(trySchedules());
    FT_RETURN_IF_ERROR(compileWhole());
    FT_RETURN_IF_ERROR(tryBudgetRows());
    FT_RETURN_IF_ERROR(fillUp());
    FT_RETURN_IF_ERROR(compileBeside());
    return result();
  }

private:
  const std::string &prefetchOf(const TunePoint &point) const {
    return space.schedules[point.schedule].prefetch;
  }
  bool isByCost(const TunePoint &point) const { return prefetchOf(point) == "auto"; }

  /// The point with every other schedule.
  std::vector<TunePoint> otherSchedules(const TunePoint &point) const {
    std::vector<TunePoint> others;
    for (size_t schedule = 0; schedule < space.schedules.size(); ++schedule) {
      TunePoint other = point;
      other.schedule = schedule;
      if (schedule != point.schedule && isDistinct(space, other))
        others.push_back(other);
    }
    return others;
  }

  void enqueue(const TuneCandidate &candidate) {
    if (queued.insert(candidate.point).second)
      queue.push_back(candidate);
  }

  /// Schedules of the fastest points, and of points that fit with another one at most.
  absl::Status trySchedules() {
    progress(0.6, "schedules");
    std::vector<TuneCandidate> firsts = search.candidates(true);
    const double limit = firsts.size() < kShown ? kNever : firsts[kShown - 1].seconds;
    firsts.resize(std::min(firsts.size(), kScheduled));
    for (const TuneCandidate &first : firsts)
      enqueue(first);
    const size_t fitting = firsts.size();
    std::vector<TuneCandidate> near = search.near();
    near.resize(std::min(near.size(), trials.leavesOutLayers() ? kNearPoints : kMostNearPoints));
    llvm::append_range(firsts, near);
    std::vector<TuneCandidate> others;
    size_t autos = 0;
    for (auto [i, first] : llvm::enumerate(firsts)) {
      if (first.seconds * kGain > limit)
        continue;
      for (const TunePoint &point : otherSchedules(first.point)) {
        // Less is gathered ahead of the same point.
        if (i >= fitting && prefetchOf(point) == prefetchOf(first.point))
          continue;
        // Settled by compiling whole models, a few.
        const bool whole = isByCost(point) && trials.leavesOutLayers();
        if (!whole)
          others.push_back({point, first.seconds});
        else if (i < fitting && autos++ < kAutos)
          enqueue({point, first.seconds});
      }
    }
    FT_RETURN_IF_ERROR(inParallel(others.size(), [&](size_t i) -> absl::Status {
      FT_ASSIGN_OR_RETURN(const TuneTrial trial, trials.estimate(others[i].point));
      others[i].seconds = fits(trial, request) ? trial.seconds : kNever;
      return absl::OkStatus();
    }));
    for (const TuneCandidate &other : others)
      if (other.seconds < kNever)
        enqueue(other);
    addBudgets();
    llvm::sort(queue);
    return absl::OkStatus();
  }

  /// About what a budget takes in this family with this offload, where it is worth solving: between what
  /// does not fit as it is and what recomputes, about where a line from one to the other meets the memory.
  std::optional<double> budgetSeconds(const TuneFamily &family, size_t offload) const {
    const TuneTrial *most = nullptr, *least = nullptr;
    bool near = false;
    for (const auto &[choice, trial] : family.tried) {
      near |= search.isNear(trial);
      if (choice.offload != offload || !trial.refused.empty())
        continue;
      const bool fitting = family.fitting.count(choice) != 0;
      if (choice.remat == 0) {
        if (fitting)
          return std::nullopt;
        most = &trial;
      } else if (least == nullptr || isBetter(trial, *least)) {
        least = &trial;
      }
    }
    if (family.fitting.empty() && !near)
      return std::nullopt;
    if (most == nullptr || least == nullptr) {
      // Where nothing fits with less offload, a budget with more of it may.
      const TuneTrial *known = most != nullptr ? most : least;
      const auto first = family.tried.find(TuneChoice());
      if (known == nullptr && first != family.tried.end() && first->second.refused.empty())
        known = &first->second;
      return family.fitting.empty() && known != nullptr ? std::optional(known->seconds) : std::nullopt;
    }
    const double over = static_cast<double>(most->deviceBytes) - static_cast<double>(request.memoryBytes);
    const double between = static_cast<double>(most->deviceBytes) - static_cast<double>(least->deviceBytes);
    const double part = std::clamp(between > 0 ? over / between : 1.0, 0.0, 1.0);
    return most->seconds + part * std::max(0.0, least->seconds - most->seconds);
  }

  /// The fastest that fits or, where none does, what takes the least memory.
  bool isBetter(const TuneTrial &trial, const TuneTrial &than) const {
    const bool fitting = fits(trial, request);
    if (fitting != fits(than, request))
      return fitting;
    return fitting ? trial.seconds < than.seconds : trial.deviceBytes < than.deviceBytes;
  }

  void addBudgets() {
    const std::optional<size_t> budget = search.ladder().budget();
    if (!budget)
      return;
    std::vector<TuneCandidate> budgets;
    for (const TuneFamily &family : search.families())
      for (size_t offload = 0; offload < space.offloads.size() && search.isChosenFrom(family); ++offload) {
        const std::optional<double> about = budgetSeconds(family, offload);
        if (!about)
          continue;
        budgets.push_back({family.at({*budget, offload}), *about});
        // Where copies cost less than computing again, a budget takes some of both.
        for (size_t both = offload + 1; both < space.offloads.size(); ++both)
          if (search.ladder().addsActivations(offload, both))
            budgets.push_back({family.at({*budget, both}), *about});
      }
    llvm::sort(budgets);
    if (trials.leavesOutLayers())
      budgets.resize(std::min(budgets.size(), kBudgets));
    for (const TuneCandidate &one : budgets)
      enqueue(one);
  }

  /// Compiles whole models until none that is left can be among the best. Where one is larger than its
  /// estimate and does not fit, choices that it made needless are open again.
  absl::Status compileWhole() {
    while (compiled < queue.size()) {
      const std::vector<TuneRow> best = bestOf(exact);
      const bool enough = best.size() == kShown;
      if (enough && queue[compiled].seconds * kOff > best.back().trial.seconds)
        break;
      if (trials.leavesOutLayers() && compiled >= (enough ? kMostExact : 2 * kMostExact))
        break;
      const size_t begin = compiled;
      compiled = std::min(queue.size(), begin + kExactRound);
      progress(0.7 + 0.3 * static_cast<double>(begin) / static_cast<double>(queue.size()), "whole models");
      std::vector<TuneTrial> found(compiled - begin);
      FT_RETURN_IF_ERROR(inParallel(found.size(), [&](size_t i) -> absl::Status {
        FT_ASSIGN_OR_RETURN(found[i], trials.exact(queue[begin + i].point));
        return absl::OkStatus();
      }));
      bool reopened = false;
      for (size_t i = 0; i < found.size(); ++i) {
        if (fits(found[i], request))
          exact.push_back({queue[begin + i].point, found[i]});
        else
          reopened |= search.reopen(queue[begin + i].point, found[i]);
      }
      if (reopened)
        FT_RETURN_IF_ERROR(queueReopened());
    }
    return absl::OkStatus();
  }

  /// Queues what has not been queued.
  absl::Status queueReopened() {
    FT_RETURN_IF_ERROR(search.run());
    const std::vector<TuneCandidate> now = search.candidates(true);
    for (size_t i = 0; i < now.size() && i < kScheduled; ++i)
      enqueue(now[i]);
    addBudgets();
    std::sort(queue.begin() + static_cast<long>(compiled), queue.end());
    return absl::OkStatus();
  }

  /// Other schedules of the fastest rows with a budget, which was solved with one.
  absl::Status tryBudgetRows() {
    size_t rows = 0;
    for (const TuneRow &row : bestOf(exact)) {
      if (!search.ladder().isBudget(row.point.remat))
        continue;
      if (trials.leavesOutLayers() && rows++ == kBudgetRows)
        break;
      for (const TunePoint &point : otherSchedules(row.point))
        if (!trials.leavesOutLayers() || isByCost(point) || point.schedule == 0)
          enqueue({point, row.trial.seconds * kGain});
    }
    std::sort(queue.begin() + static_cast<long>(compiled), queue.end());
    return compileWhole();
  }

  /// Where few of what was queued differ: other schedules of all that fits, and choices that others dominate.
  absl::Status fillUp() {
    const size_t fills = trials.leavesOutLayers() ? 1 : kFills;
    for (size_t fill = 0; fill < fills && bestOf(exact).size() < kShown; ++fill) {
      FT_RETURN_IF_ERROR(enqueueFill());
      if (compiled == queue.size())
        break;
      FT_RETURN_IF_ERROR(compileWhole());
    }
    return absl::OkStatus();
  }

  absl::Status enqueueFill() {
    const auto full = [&] { return queue.size() >= compiled + kFill; };
    for (const TuneRow &row : bestOf(exact))
      if (search.ladder().isBudget(row.point.remat))
        for (const TunePoint &point : otherSchedules(row.point))
          enqueue({point, row.trial.seconds});
    for (bool more = true; more && !full();) {
      for (const TuneCandidate &one : search.candidates(true)) {
        if (full())
          return absl::OkStatus();
        enqueue(one);
        for (const TunePoint &point : otherSchedules(one.point))
          enqueue({point, one.seconds});
      }
      FT_ASSIGN_OR_RETURN(more, search.openDominated());
    }
    return absl::OkStatus();
  }

  /// The best of those that would change bits, where one is about as fast.
  absl::Status compileBeside() {
    for (const TuneCandidate &other : search.candidates(false)) {
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
                      .boundSeconds = search.leastKernelSeconds(),
                      .compilations = trials.compilations()};
    for (const TuneRow &row : exact)
      result.boundSeconds = std::min(result.boundSeconds, row.trial.kernelSeconds);
    if (result.boundSeconds == kNever)
      result.boundSeconds = 0;
    std::set<TunePoint> shown;
    for (const auto *rows : {&result.best, &result.front})
      for (const TuneRow &row : *rows)
        shown.insert(row.point);
    result.rejections = rejectionsOf(request, space, search.ladder(), search.families(), shown.size());
    progress(1, "");
    return result;
  }

  const TuneRequest &request;
  const TuneSpace &space;
  TuneTrials trials;
  const TuneProgress &progress;
  TuneFamilySearch search;
  std::vector<TuneCandidate> queue; // the first of them are compiled
  size_t compiled = 0;
  std::set<TunePoint> queued;
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
