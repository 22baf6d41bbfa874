#include "mlir/IR/MLIRContext.h"
#include "models/import.h"
#include "models/registry.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/standard_streams.h"
#include "tools/ftc/commands.h"

namespace ftc {

int Run(const ModelCommand& command) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (command.list) {
    ft::models::listModels(stream);
    ft::models::listModelTypes(stream);
    return StatusOf(ft::PrintOut(text));
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = ft::models::buildModel(context, command.name, command.preset, command.overrides);
  if (!module) return FailUsage(llvm::toString(module.takeError()));
  ft::models::printModel(**module, stream);
  const bool to_stdout = command.output.empty() || command.output == "-";
  return StatusOf(to_stdout ? ft::PrintOut(text) : ft::WriteFileAtomically(command.output, text));
}

}  // namespace ftc
