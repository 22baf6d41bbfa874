#include "mlir/IR/MLIRContext.h"
#include "models/registry.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "tools/ftc/commands.h"

namespace ftc {

int Run(const ModelCommand& command) {
  if (command.list) {
    ft::models::listModels(llvm::outs());
    return ft::kExitOk;
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = ft::models::buildModel(context, command.name, command.preset, command.overrides);
  if (!module) return FailUsage(llvm::toString(module.takeError()));
  std::string text;
  llvm::raw_string_ostream stream(text);
  ft::models::printModel(**module, stream);
  if (command.output.empty() || command.output == "-") {
    llvm::outs() << text;
    return ft::kExitOk;
  }
  const absl::Status status = ft::WriteFileAtomically(command.output, text);
  return status.ok() ? ft::kExitOk : Fail(status);
}

}  // namespace ftc
