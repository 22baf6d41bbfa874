// mlir-opt with the dialects and passes of this project, for tests and for looking at what a pass does.
#include "compiler/pipeline/check_source.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/standard_streams.h"
#include "tools/ft-opt/registration.h"

namespace {

int Fail(const absl::Status& status) {
  ft::PrintError("ft-opt: " + std::string(status.message()));
  return ft::ExitStatus(status);
}

// As mlir-opt, of text that MLIR's parser stands.
int Run(const std::string& input, const std::string& output, mlir::DialectRegistry& registry,
        const mlir::MlirOptMainConfig& config) {
  const bool piped = input == "-";
  const absl::StatusOr<std::string> text =
      ft::ReadText(piped ? "/dev/stdin" : input, "module", ft::kMaxModelBytes);
  if (!text.ok()) return Fail(text.status());
  const std::string name = piped ? "<stdin>" : input;
  if (!ft::compiler::isBytecode(*text)) {
    const absl::Status status = ft::compiler::checkSource(*text, name);
    if (!status.ok()) return Fail(status);
  }
  std::string mistake;
  const auto file = mlir::openOutputFile(output, &mistake);
  if (file == nullptr) return Fail(absl::InternalError(mistake));
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(*text, name);
  if (mlir::failed(mlir::MlirOptMain(file->os(), std::move(buffer), registry, config))) return EXIT_FAILURE;
  file->keep();
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
  ft_opt::registerOurDialects(registry);
  mlir::registerTransformsPasses();
  ft_opt::registerOurPasses();
  const auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "Optimizer driver of the dialects ft and ftx\n", registry);
  const auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  const llvm::InitLLVM init(argc, argv);
  return Run(input, output, registry, config);
}
