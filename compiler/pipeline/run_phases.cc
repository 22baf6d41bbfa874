#include "compiler/pipeline/run_phases.h"

#include "runtime/base/status_macros.h"

namespace ft::compiler {

using namespace mlir;

size_t phaseNumber(StringRef name) {
  return llvm::find_if(phases(), [&](const Phase &phase) { return phase.name == name; }) - phases().begin();
}

absl::Status runPhase(const Phase &phase, ModuleOp module, const CompileOptions &options,
                      const FirstError &error) {
  if (!phase.addPasses)
    return absl::OkStatus();
  PassManager passes(module.getContext());
  passes.enableVerifier(options.checks);
  phase.addPasses(passes, options);
  if (succeeded(passes.run(module)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(error.text().empty() ? "phase " + phase.name.str() + " failed"
                                                         : error.text());
}

absl::Status runPhases(size_t begin, size_t end, ModuleOp module, const CompileOptions &options,
                       const FirstError &error) {
  for (const Phase &phase : phases().slice(begin, end - begin))
    FT_RETURN_IF_ERROR(runPhase(phase, module, options, error));
  return absl::OkStatus();
}

absl::StatusOr<proto::Plan> emit(ModuleOp module, const PlanInfo &info, const FirstError &error) {
  proto::Plan plan;
  if (failed(emitPlan(module, info, plan)))
    return absl::InvalidArgumentError(error.text());
  return plan;
}

} // namespace ft::compiler
