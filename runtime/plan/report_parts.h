// Parts of ReportPlan about work: what a program sends and computes.
#pragma once

#include "runtime/plan/report.h"

namespace ft {

TrafficReport ReportTraffic(const proto::Plan& plan, const proto::Program& program, const BoundPlan& bound);
FlopsReport ReportFlops(const proto::Plan& plan, const proto::Program& program, const BoundPlan& bound);
// Of one run of `program`.
uint64_t ModelFlops(const proto::Program& program);

}  // namespace ft
