#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

// Not verified: a plan that is wrong is what one wants to look at.
absl::Status Dump(const DumpCommand& command) {
  FT_ASSIGN_OR_RETURN(const ft::PlanFile file, ft::ReadPlan(command.plan));
  if (command.kernels) {
    FT_ASSIGN_OR_RETURN(const std::string text, KernelsText(file.plan));
    return ft::PrintOut(text);
  }
  return ft::PrintOut(PlanText(file.plan, file.hash));
}

}  // namespace

int Run(const DumpCommand& command) { return StatusOf(Dump(command)); }

}  // namespace ftc
