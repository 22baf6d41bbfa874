// A figure that depends on a size, by points that were measured.
#pragma once

#include "google/protobuf/repeated_ptr_field.h"
#include "runtime/plan/target.h"

namespace ft {

using Curve = google::protobuf::RepeatedPtrField<Target::Point>;  // ascending by `at`

// The value at `at` > 0: between two points interpolated in the logarithm of `at`, beyond the ends that of
// the end. `otherwise` where there are no points.
double ValueAt(const Curve& points, double at, double otherwise);

// One more, beyond those that it has.
inline void AddPoint(double at, double value, Curve& points) {
  Target::Point* point = points.Add();
  point->set_at(at);
  point->set_value(value);
}

}  // namespace ft
