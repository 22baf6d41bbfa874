#include <optional>
#include <string>

#include "compiler/codegen/ptx/assembly.h"
#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

// ", sm_80 40 registers, sm_90 38 registers and 16 B spilled": of a thread.
std::string Assembled(const std::string& ptx, const std::string& ptxas) {
  auto assemblies = ft::compiler::assemble(ptx, ptxas);
  if (!assemblies) return ", not assembled: " + llvm::toString(assemblies.takeError());
  std::string text;
  for (const ft::compiler::PtxAssembly& assembly : *assemblies) {
    text += fmt::format(", {} {} registers", assembly.architecture, assembly.registers);
    if (assembly.spilledBytes > 0) text += fmt::format(" and {} B spilled", assembly.spilledBytes);
  }
  return text;
}

// Not verified: a plan that is wrong is what one wants to look at.
absl::Status Dump(const DumpCommand& command) {
  FT_ASSIGN_OR_RETURN(const ft::PlanFile file, ft::ReadPlan(command.plan));
  if (command.kernels) {
    const std::optional<std::string> ptxas = ft::compiler::findPtxas();
    FT_ASSIGN_OR_RETURN(const std::string text, KernelsText(file.plan, [&](const std::string& ptx) {
                          return ptxas.has_value() ? Assembled(ptx, *ptxas) : "";
                        }));
    const absl::StatusOr<std::string> traffic = TrafficText(file.plan);
    return ft::PrintOut(text + "\n" +
                        (traffic.ok()
                             ? *traffic
                             : fmt::format("not counted: {}\n", std::string(traffic.status().message()))));
  }
  return ft::PrintOut(PlanText(file.plan, file.hash));
}

}  // namespace

int Run(const DumpCommand& command) { return StatusOf(Dump(command)); }

}  // namespace ftc
