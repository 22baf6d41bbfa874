#include "compiler/tune/rows.h"

#include <algorithm>
#include <tuple>

namespace ft::compiler {

namespace {

auto costOf(const TuneRow &row) {
  return std::tie(row.trial.seconds, row.trial.deviceBytes, row.trial.hostBytes);
}

void sortByTime(std::vector<TuneRow> &rows) {
  std::sort(rows.begin(), rows.end(), [](const TuneRow &a, const TuneRow &b) {
    return std::tuple(costOf(a), a.point) < std::tuple(costOf(b), b.point);
  });
}

} // namespace

std::vector<TuneRow> bestOf(std::vector<TuneRow> rows) {
  sortByTime(rows);
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const TuneRow &a, const TuneRow &b) { return costOf(a) == costOf(b); }),
             rows.end());
  rows.resize(std::min(rows.size(), kShown));
  return rows;
}

std::vector<TuneRow> frontOf(std::vector<TuneRow> rows) {
  sortByTime(rows);
  std::vector<TuneRow> front;
  for (const TuneRow &row : rows)
    if (front.empty() || row.trial.deviceBytes < front.back().trial.deviceBytes)
      front.push_back(row);
  return front;
}

} // namespace ft::compiler
