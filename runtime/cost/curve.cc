#include "runtime/cost/curve.h"

#include <cmath>

namespace ft {

double ValueAt(const Curve& points, double at, double otherwise) {
  if (points.empty()) return otherwise;
  if (!(at > points[0].at())) return points[0].value();
  for (int i = 1; i < points.size(); ++i) {
    const Target::Point &low = points[i - 1], &high = points[i];
    if (at > high.at()) continue;
    const double part = std::log(at / low.at()) / std::log(high.at() / low.at());
    return low.value() + part * (high.value() - low.value());
  }
  return points[points.size() - 1].value();
}

}  // namespace ft
