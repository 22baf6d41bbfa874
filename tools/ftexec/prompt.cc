#include "tools/ftexec/prompt.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/tokenizer_check.h"

namespace ft {
namespace {

constexpr uint64_t kBytes = 256;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Characters that are cut off or wrong are one U+FFFD a byte; so are those that a terminal obeys.
std::string AsUtf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = Utf8SequenceLength(bytes);
    const std::string_view character = bytes.substr(0, std::max<size_t>(length, 1));
    const bool is_shown = length > 0 && Printable(character) == character;
    text += is_shown ? character : kReplacement;
    bytes.remove_prefix(character.size());
  }
  return text;
}

}  // namespace

absl::StatusOr<Prompts> Prompts::Open(const std::string& prompt, const proto::Plan& plan) {
  Prompts prompts;
  if (absl::EndsWith(prompt, ".ftd")) {
    FT_RETURN_IF_ERROR(prompts.ReadFile(prompt));
  } else if (plan.vocab_size() == kBytes) {
    std::vector<int32_t>& text = prompts.prompts_.emplace_back();
    for (const char byte : prompt) text.push_back(static_cast<unsigned char>(byte));
  } else {
    return absl::InvalidArgumentError(
        fmt::format("--prompt={} is text, but the model has a vocabulary of {}: its tokens are no bytes; "
                    "give a file that "
                    "ft-tokenize --prompt makes, NAME.ftd",
                    Quote(prompt), plan.vocab_size()));
  }
  FT_RETURN_IF_ERROR(prompts.Check(plan));
  return prompts;
}

absl::Status Prompts::ReadFile(const std::string& path) {
  FT_ASSIGN_OR_RETURN(FtdFile file, FtdFile::Open(path));
  file_ = std::make_unique<FtdFile>(std::move(file));
  for (int64_t document = 0; document < file_->num_documents(); ++document) {
    std::vector<int32_t>& prompt = prompts_.emplace_back();
    for (uint64_t i = file_->documents()[document]; i < file_->documents()[document + 1]; ++i)
      prompt.push_back(static_cast<int32_t>(file_->Token(static_cast<int64_t>(i))));
  }
  if (file_->eos_token().has_value()) end_ = static_cast<int32_t>(*file_->eos_token());
  return absl::OkStatus();
}

absl::Status Prompts::Check(const proto::Plan& plan) const {
  if (file_ != nullptr)
    FT_RETURN_IF_ERROR(
        CheckTokenizer(*file_, static_cast<int64_t>(plan.vocab_size()), plan.tokenizer_hash()));
  for (const std::vector<int32_t>& text : prompts_)
    if (text.empty())
      return absl::InvalidArgumentError("--prompt is empty; a model continues one token at least");
  return absl::OkStatus();
}

std::string Prompts::TextOf(absl::Span<const int32_t> tokens) const {
  if (file_ != nullptr && !file_->vocabulary().has_value()) return absl::StrJoin(tokens, " ");
  std::string bytes;
  for (const int32_t token : tokens) {
    if (file_ == nullptr) {
      bytes.push_back(static_cast<char>(token));
    } else if (token >= file_->vocabulary()->size()) {
      bytes.append("\xff");  // rows that pad the model's table: they are no text
    } else if (!file_->vocabulary()->IsSpecial(token)) {
      bytes.append(file_->vocabulary()->Bytes(token));
    }
  }
  return AsUtf8(bytes);
}

uint64_t Prompts::Hash() const {
  std::string text;
  for (const std::vector<int32_t>& prompt : prompts_)
    absl::StrAppend(&text, absl::StrJoin(prompt, " "), "\n");
  if (end_.has_value()) absl::StrAppend(&text, *end_);
  return ContentHashOf({static_cast<const uint8_t*>(static_cast<const void*>(text.data())), text.size()});
}

}  // namespace ft
