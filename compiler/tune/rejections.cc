#include "compiler/tune/rejections.h"

#include <map>
#include <string>

#include "fmt/format.h"
#include "runtime/base/numbers.h"

namespace ft::compiler {

namespace {

std::string whyNot(const TuneRequest &request, const TuneTrial &trial, int64_t batch, const char *with) {
  if (!trial.refused.empty())
    return trial.refused;
  const bool device = request.memoryBytes != 0 && trial.deviceBytes > request.memoryBytes;
  const uint64_t over =
      device ? trial.deviceBytes - request.memoryBytes : trial.hostBytes - request.hostBytes;
  return fmt::format("{} too much{}, with a batch of {}{}", ShortBytes(over), device ? "" : " in host memory",
                     batch, with);
}

/// A trial that fits less badly.
bool isNearer(const TuneTrial &trial, const TuneTrial &than) {
  if (trial.refused.empty() != than.refused.empty())
    return trial.refused.empty();
  return trial.deviceBytes < than.deviceBytes;
}

/// What does not fit of a strategy; the trial that fits least badly speaks for all.
struct Large {
  uint64_t points = 0;
  const TuneTrial *nearest = nullptr;
  int64_t batch = 0; // of it
  bool fits = false; // anything of the strategy does

  void add(const TuneTrial &trial, int64_t itsBatch) {
    if (nearest != nullptr && !isNearer(trial, *nearest))
      return;
    nearest = &trial;
    batch = itsBatch;
  }
};

} // namespace

std::vector<TuneRejection> rejectionsOf(const TuneRequest &request, const TuneSpace &space,
                                        const TuneLadder &ladder, const std::vector<TuneFamily> &families,
                                        uint64_t shown) {
  const uint64_t schedules = space.schedules.size();
  const uint64_t choices = uint64_t{space.remats.size()} * space.offloads.size() * schedules;
  std::map<std::string, Large> byName, less; // where nothing of a family fits, and where some does
  uint64_t dominated = 0, slow = 0, otherBits = 0;
  for (const TuneFamily &family : families) {
    const std::string &name = space.layouts[family.origin.layout].strategy;
    const int64_t batch = space.splits[family.origin.split].batch;
    Large &large = byName[name];
    large.fits |= !family.fitting.empty();
    if (family.fitting.empty()) {
      large.points += choices;
      for (const auto &[choice, trial] : family.tried)
        large.add(trial, batch);
      continue;
    }
    if (space.layouts[family.origin.layout].changesBits) {
      otherBits += choices;
      continue;
    }
    for (const TuneChoice &choice : ladder.choices()) {
      if (family.fitting.count(choice) != 0)
        continue;
      if (const auto tried = family.tried.find(choice); tried != family.tried.end()) {
        less[name].points += schedules;
        less[name].add(tried->second, batch);
      } else {
        (ladder.isDominated(family, choice) ? dominated : slow) += schedules;
      }
    }
  }
  std::vector<TuneRejection> rejections;
  for (const auto &[name, large] : byName)
    if (large.nearest != nullptr)
      rejections.push_back({name + (large.fits ? ", other batches, units or meshes" : ""), large.points,
                            whyNot(request, *large.nearest, large.batch,
                                   space.remats.size() > 1 ? " and all recomputation that helps" : "")});
  for (const auto &[name, large] : less)
    rejections.push_back({name + ", less recomputation or offload", large.points,
                          whyNot(request, *large.nearest, large.batch, "")});
  if (otherBits > 0)
    rejections.push_back({"layouts that change bits", otherBits, "never chosen unless they are given"});
  if (dominated > 0)
    rejections.push_back(
        {"recomputation and offload", dominated, "dominated by the same with less of them, which fits"});
  if (slow > 0)
    rejections.push_back({"other choices", slow, "their kernels alone take longer than what was found"});
  uint64_t told = shown;
  for (const TuneRejection &rejection : rejections)
    told += rejection.points;
  if (told < space.size())
    rejections.push_back({"all else", space.size() - told,
                          "slower as estimated or compiled, schedules and budgets of what is slower, or the "
                          "same plan by other settings"});
  return rejections;
}

} // namespace ft::compiler
