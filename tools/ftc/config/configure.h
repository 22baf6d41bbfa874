// train.yaml and flags of ftc compile, made into options.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ftc/config/layers.h"

namespace ftc {

// A flag and its value, checked: "strategy", "zero3". The mistake in words when the value is refused.
std::variant<Given, std::string> GivenByFlag(size_t setting, std::string_view text);

// A setting as if it had been given by a flag, whatever `flags` said of it. InvalidArgument with the mistake
// in words.
absl::Status SetFlag(std::string_view name, const std::string& text, std::vector<Given>& flags);

// The machine that --target=`text` means: a shipped one or a file. Errors: those of ReadTarget;
// InvalidArgument when none of this name is shipped.
absl::StatusOr<ft::Target> TargetNamed(const std::string& text);

// Reads `path` (none when empty) below the flags, and the target's file. Errors: those of ReadTrainYaml,
// ReadFileLayer and TargetNamed. The variant holds a refusal when settings do not go together.
absl::StatusOr<std::variant<Effective, Refusal>> Configure(const std::string& path,
                                                           const std::vector<Given>& flags);

// Some number of ranks has the global batch, of `batch` sequences a rank and micro-step. Else
// InvalidArgument.
absl::Status CheckGlobalBatch(const Effective& effective, int64_t batch);

// All settings as a train.yaml, each with a comment that says where its value comes from; read again, it
// gives the same.
std::string PrintConfig(const Effective& effective);

// The tables of docs/train-yaml.md.
std::string SettingsAsMarkdown();

}  // namespace ftc
