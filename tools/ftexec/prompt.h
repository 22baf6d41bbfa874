// What a model continues, and how what it writes becomes text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/ftd_file.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

class Prompts {
 public:
  // Of --prompt: the text itself, where every byte is a token of the model; or a .ftd file, each document of
  // which is a prompt. Errors: InvalidArgument (65) for an empty one, for text where tokens are no bytes, and
  // for tokens that the model does not have; those of FtdFile::Open.
  static absl::StatusOr<Prompts> Open(const std::string& prompt, const proto::Plan& plan);

  const std::vector<std::vector<int32_t>>& all() const { return prompts_; }  // one at least
  // What ends a text; nothing where that is not known.
  std::optional<int32_t> end() const { return end_; }

  // The bytes of tokens, as far as they are UTF-8 and nothing that a terminal obeys: what is not is U+FFFD.
  // Tokens that are no text are left out. Where nobody knows the bytes, the ids.
  std::string TextOf(absl::Span<const int32_t> tokens) const;

  // Equal where the prompts are.
  uint64_t Hash() const;

 private:
  Prompts() = default;
  absl::Status ReadFile(const std::string& path);
  absl::Status Check(const proto::Plan& plan) const;

  std::vector<std::vector<int32_t>> prompts_;
  std::optional<int32_t> end_;
  std::unique_ptr<FtdFile> file_;  // null: tokens are bytes
};

}  // namespace ft
