#include "compiler/tune/rejections.h"

#include <map>
#include <string>

#include "fmt/format.h"
#include "runtime/base/numbers.h"

namespace ft::compiler {

namespace {

std::string whyNot(const TuneRequest &request, const TuneSpace &space, const TuneTrial &trial,
                   int64_t batch) {
  if (!trial.refused.empty())
    return trial.refused;
  const bool device = request.memoryBytes != 0 && trial.deviceBytes > request.memoryBytes;
  const uint64_t over =
      device ? trial.deviceBytes - request.memoryBytes : trial.hostBytes - request.hostBytes;
  return fmt::format("{} too much{}, with a batch of {}{}", ShortBytes(over), device ? "" : " in host memory",
                     batch, space.remats.size() > 1 ? " and all recomputation that helps" : "");
}

/// A trial that fits less badly.
bool isNearer(const TuneTrial &trial, const TuneTrial &than) {
  if (trial.refused.empty() != than.refused.empty())
    return trial.refused.empty();
  return trial.deviceBytes < than.deviceBytes;
}

} // namespace

std::vector<TuneRejection> rejectionsOf(const TuneRequest &request, const TuneSpace &space,
                                        const TuneLadder &ladder, const std::vector<TuneFamily> &families) {
  const uint64_t schedules = space.schedules.size();
  const uint64_t choices = uint64_t{space.remats.size()} * space.offloads.size() * schedules;
  struct Large {
    uint64_t points = 0;
    const TuneTrial *nearest = nullptr; // speaks for all
    int64_t batch = 0;                  // of it
    bool fits = false;
  };
  std::map<std::string, Large> byName;
  uint64_t dominated = 0, slow = 0;
  for (const TuneFamily &family : families) {
    Large &large = byName[space.layouts[family.origin.layout].strategy];
    large.fits |= !family.fitting.empty();
    if (family.fitting.empty()) {
      large.points += choices;
      for (const auto &[choice, trial] : family.tried) {
        if (large.nearest != nullptr && !isNearer(trial, *large.nearest))
          continue;
        large.nearest = &trial;
        large.batch = space.splits[family.origin.split].batch;
      }
      continue;
    }
    for (const TuneChoice &choice : ladder.choices()) {
      if (family.fitting.count(choice) != 0)
        continue;
      const bool isDominated = ladder.isDominated(family, choice);
      dominated += isDominated ? schedules : 0;
      slow += !isDominated && family.tried.count(choice) == 0 ? schedules : 0;
    }
  }
  std::vector<TuneRejection> rejections;
  for (const auto &[name, large] : byName)
    if (large.nearest != nullptr)
      rejections.push_back({name + (large.fits ? ", other batches, units or meshes" : ""), large.points,
                            whyNot(request, space, *large.nearest, large.batch)});
  if (dominated > 0)
    rejections.push_back(
        {"recomputation and offload", dominated, "dominated by the same with less of them, which fits"});
  if (slow > 0)
    rejections.push_back({"other choices", slow, "their kernels alone take longer than what was found"});
  return rejections;
}

} // namespace ft::compiler
