// mlir-opt with the dialects and passes of this project, for tests and for looking at what a pass does.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "tools/ft-opt/registration.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
  ft_opt::registerOurDialects(registry);
  mlir::registerTransformsPasses();
  ft_opt::registerOurPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Optimizer driver of the dialects ft and ftx\n", registry));
}
