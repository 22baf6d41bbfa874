#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "dialects/ft/signature.h"
#include "mlir/IR/MLIRContext.h"
#include "models/import.h"
#include "models/registry.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_file.h"
#include "runtime/checkpoint/tokenizer_hash.h"
#include "tools/ftc/commands.h"
#include "tools/ftc/output_and_inputs.h"

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

// Says in the module which tokenizer the folder has, where it has one.
absl::Status AddTokenizer(const std::string& config, const ft::ModelFacts& facts, mlir::ModuleOp module) {
  const std::string path = fs::path(config).replace_filename("tokenizer.json");
  std::error_code error;
  if (!fs::exists(path, error) || facts.vocab_size == 0) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(const ft::TokenizerFacts tokenizer, ft::ReadTokenizer(path));
  if (tokenizer.vocabulary_size > facts.vocab_size)
    ft::PrintError(
        fmt::format("ftc: note: '{}' has ids up to {}, but the model has {} rows for tokens; data with "
                    "such a vocabulary is refused",
                    path, tokenizer.vocabulary_size - 1, facts.vocab_size));
  module->setAttr(mlir::ft::kTokenizerAttr, mlir::StringAttr::get(module.getContext(), tokenizer.hash));
  return absl::OkStatus();
}

}  // namespace

int Run(const ImportCommand& command) {
  const Source source = SourceOf(command.path);
  if (command.output != "-")
    if (const std::string mistake = OverwrittenInput(command.output, {source.config}); !mistake.empty())
      return FailUsage(mistake);
  const absl::StatusOr<ft::ModelFacts> facts = ft::ReadConfigFile(source.config);
  if (!facts.ok()) return Fail(facts.status());
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = ft::models::importModel(context, *facts, source.name, command.overrides);
  if (!module) {
    const std::string why = llvm::toString(module.takeError());
    return Fail(absl::InvalidArgumentError("'" + source.config + "': " + why));
  }
  if (const absl::Status status = AddTokenizer(source.config, *facts, **module); !status.ok())
    return Fail(status);
  std::string text;
  llvm::raw_string_ostream stream(text);
  ft::models::printModel(**module, stream);
  const bool to_stdout = command.output.empty() || command.output == "-";
  return StatusOf(to_stdout ? ft::PrintOut(text) : ft::WriteFileAtomically(command.output, text));
}

}  // namespace ftc
