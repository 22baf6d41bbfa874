// Everything that the page of a report shows, as one JSON document: the page draws it and reckons nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ftc/explain_plans.h"
#include "tools/ftc/report/run_metrics.h"
#include "tools/ftc/report/run_trace.h"
#include "tools/ftc/report/scaling.h"

namespace ftc {

struct ReportInput {
  ExplainedPlans explained;
  std::vector<Scaling> scaling;   // parallel to the plans
  std::optional<RunMetrics> run;  // of the first plan
  std::optional<RunTrace> trace;  // of the first plan
};

// ASCII without `<`: it can stand inside of a script element, whatever names the plan has. Files are named
// without their folders.
std::string ReportDocument(const ReportInput& input);

}  // namespace ftc
