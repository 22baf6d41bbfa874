#include "compiler/tune/exhaustive.h"

#include "compiler/tune/families.h"
#include "compiler/tune/parallel.h"
#include "compiler/tune/rows.h"

#include <atomic>

#include "runtime/base/status_macros.h"

namespace ft::compiler {

namespace {

std::vector<TunePoint> allPoints(const TuneSpace &space) {
  std::vector<TunePoint> points;
  for (const TuneFamily &family : tuneFamiliesOf(space))
    for (size_t remat = 0; remat < space.remats.size(); ++remat)
      for (size_t offload = 0; offload < space.offloads.size(); ++offload)
        for (size_t schedule = 0; schedule < space.schedules.size(); ++schedule) {
          TunePoint point = family.at({remat, offload});
          point.schedule = schedule;
          if (isDistinct(space, point))
            points.push_back(point);
        }
  return points;
}

} // namespace

absl::StatusOr<TuneResult> searchWholeTuneSpace(const TuneRequest &request, const TuneSpace &space,
                                                const TuneProgress &progress) {
  TuneTrials trials(request, space);
  const std::vector<TunePoint> points = allPoints(space);
  std::vector<TuneTrial> found(points.size());
  std::atomic<size_t> done = 0;
  FT_RETURN_IF_ERROR(inParallel(points.size(), [&](size_t i) -> absl::Status {
    FT_ASSIGN_OR_RETURN(found[i], trials.exact(points[i]));
    progress(static_cast<double>(++done) / static_cast<double>(points.size()), "every point");
    return absl::OkStatus();
  }));
  std::vector<TuneRow> rows, beside;
  for (size_t i = 0; i < points.size(); ++i)
    if (fits(found[i], request))
      (space.layouts[points[i].layout].changesBits ? beside : rows).push_back({points[i], found[i]});
  return TuneResult{.best = bestOf(rows),
                    .front = frontOf(rows),
                    .beside = bestOf(beside),
                    .compilations = trials.compilations()};
}

} // namespace ft::compiler
