#include "compiler/pipeline/run_stages.h"

#include "runtime/base/status_macros.h"

namespace ft::compiler {

using namespace mlir;

size_t stageNumber(StringRef name) {
  return llvm::find_if(stages(), [&](const Stage &stage) { return stage.name == name; }) - stages().begin();
}

absl::Status runStage(const Stage &stage, ModuleOp module, const CompileOptions &options,
                      const FirstError &error) {
  if (!stage.addPasses)
    return absl::OkStatus();
  PassManager passes(module.getContext());
  passes.enableVerifier(options.checks);
  stage.addPasses(passes, options);
  if (succeeded(passes.run(module)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(error.text().empty() ? "stage " + stage.name.str() + " failed"
                                                         : error.text());
}

absl::Status runStages(size_t begin, size_t end, ModuleOp module, const CompileOptions &options,
                       const FirstError &error) {
  for (const Stage &stage : stages().slice(begin, end - begin))
    FT_RETURN_IF_ERROR(runStage(stage, module, options, error));
  return absl::OkStatus();
}

absl::StatusOr<proto::Plan> emit(ModuleOp module, const PlanInfo &info, const FirstError &error) {
  proto::Plan plan;
  if (failed(emitPlan(module, info, plan)))
    return absl::InvalidArgumentError(error.text());
  return plan;
}

} // namespace ft::compiler
