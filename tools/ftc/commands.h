// What ftc does. Each function prints its results and its errors and returns the exit status.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "tools/ftc/command_line.h"

namespace ftc {

int Run(const ModelCommand& command);
int Run(const ImportCommand& command);
int Run(const CompileCommand& command);
int Run(const ExplainCommand& command);
int Run(const ReportCommand& command);
int Run(const TuneCommand& command);
int Run(const DumpCommand& command);
int Run(const VerifyCommand& command);
int Run(const PostmortemCommand& command);
int Run(const TokenizeCommand& command);

// "ftc: message" on standard error; the exit status for it.
int Fail(const absl::Status& status);
// 0 when it is well, Fail otherwise.
int StatusOf(const absl::Status& status);
int FailUsage(const std::string& message);

std::string PlanText(const ft::proto::Plan& plan, uint64_t hash);

// Bodies of clusters, how often they run, what they move and their code; behind that for GPUs what `of_ptx`
// says of it. Errors: those of ClustersOf.
absl::StatusOr<std::string> KernelsText(const ft::proto::Plan& plan,
                                        const std::function<std::string(const std::string& ptx)>& of_ptx);
// A line for each program that has ops: how much, and how much it would have to, on a rank of the mesh
// that the plan was compiled for. Errors: those of VerifyPlan.
absl::StatusOr<std::string> TrafficText(const ft::proto::Plan& plan);

}  // namespace ftc
