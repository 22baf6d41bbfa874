#include <filesystem>
#include <string>

#include "mlir/IR/MLIRContext.h"
#include "models/import.h"
#include "models/registry.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/checkpoint/config_file.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

namespace fs = std::filesystem;

// The config.json that is meant, and what the model is called after.
struct Source {
  std::string config;
  std::string name;
};

Source SourceOf(const std::string& path) {
  std::error_code error;
  const fs::path given = fs::absolute(path, error).lexically_normal();
  const fs::path trimmed = given.has_filename() ? given : given.parent_path();
  if (fs::is_directory(trimmed, error)) return {trimmed / "config.json", trimmed.filename()};
  return {path, trimmed.parent_path().filename()};
}

}  // namespace

int Run(const ImportCommand& command) {
  const Source source = SourceOf(command.path);
  const absl::StatusOr<ft::ModelFacts> facts = ft::ReadConfigFile(source.config);
  if (!facts.ok()) return Fail(facts.status());
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = ft::models::importModel(context, *facts, source.name, command.overrides);
  if (!module) {
    const std::string why = llvm::toString(module.takeError());
    return Fail(absl::InvalidArgumentError("'" + source.config + "': " + why));
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  ft::models::printModel(**module, stream);
  const bool to_stdout = command.output.empty() || command.output == "-";
  return StatusOf(to_stdout ? ft::PrintOut(text) : ft::WriteFileAtomically(command.output, text));
}

}  // namespace ftc
