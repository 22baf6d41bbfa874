// Plans of models, for tests.
#pragma once

#include <functional>
#include <string>

#include "compiler/pipeline/compile.h"
#include "gtest/gtest.h"
#include "mlir/IR/MLIRContext.h"
#include "models/registry.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {

// `preset` may be empty where the model is one. An empty plan, and a failure of the test, when it does not
// compile.
inline proto::Plan CompilePlan(const std::string& model, const std::string& preset,
                               const std::function<void(compiler::CompileOptions&)>& set) {
  TempFolder folder;
  std::string text;
  {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    auto module = models::buildModel(context, model, preset, {});
    EXPECT_TRUE(static_cast<bool>(module));
    llvm::raw_string_ostream stream(text);
    models::printModel(**module, stream);
  }
  compiler::CompileOptions options;
  set(options);
  const auto ignore = [](const compiler::Stage&, int, mlir::ModuleOp) { return absl::OkStatus(); };
  auto plan = compiler::compileModel(folder.Write("model.mlir", text), options, ignore);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : proto::Plan();
}

}  // namespace ft
