#include "compiler/pipeline/compile.h"

#include "compiler/emit/emit_plan.h"
#include "compiler/pipeline/check_model.h"
#include "compiler/pipeline/check_source.h"
#include "compiler/pipeline/diagnostics.h"
#include "dialects/ft/dialect.h"
#include "dialects/ftx/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <cerrno>

#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft::compiler {

using namespace mlir;

namespace {

/// The phase's own passes, or an error at the op that it refused.
absl::Status runPhase(const Phase &phase, ModuleOp module, const CompileOptions &options,
                      const FirstError &error) {
  PassManager passes(module.getContext());
  phase.addPasses(passes, options);
  if (succeeded(passes.run(module)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(error.text().empty() ? "phase " + phase.name.str() + " failed"
                                                         : error.text());
}

absl::StatusOr<OwningOpRef<ModuleOp>> parseModel(const std::string &path, MLIRContext *context,
                                                 const FirstError &error) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (std::error_code code = buffer.getError())
    return PosixError(code.value(), "read model", path);
  FT_RETURN_IF_ERROR(checkSource((*buffer)->getBuffer(), path));
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, context);
  if (!module || failed(checkModel(*module, llvm::sys::path::stem(path))))
    return absl::InvalidArgumentError(error.text().empty() ? path + ": error: it is not a model"
                                                           : error.text());
  return module;
}

PlanInfo describe(const CompileOptions &options) {
  PlanInfo info;
  info.producer = "ftc " FT_VERSION;
  info.settings = {{"beta1", options.beta1},
                   {"beta2", options.beta2},
                   {"eps", options.eps},
                   {"weight_decay", options.weightDecay},
                   {"clip", options.clip}};
  info.textSettings = {{"optimizer", "adamw"}, {"prefetch", options.prefetch}};
  return info;
}

} // namespace

absl::StatusOr<proto::Plan> compileModel(const std::string &path, const CompileOptions &options,
                                         const PhaseObserver &observe) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, mlir::ft::FtDialect, ftx::FtxDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  FirstError error(&context);
  FT_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, parseModel(path, &context, error));
  for (auto [number, phase] : llvm::enumerate(phases())) {
    if (phase.addPasses)
      FT_RETURN_IF_ERROR(runPhase(phase, *module, options, error));
    FT_RETURN_IF_ERROR(observe(phase, number, *module));
  }
  proto::Plan plan;
  if (failed(emitPlan(*module, describe(options), plan)))
    return absl::InvalidArgumentError(error.text());
  return plan;
}

} // namespace ft::compiler
