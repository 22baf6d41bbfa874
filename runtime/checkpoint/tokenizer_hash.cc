#include "runtime/checkpoint/tokenizer_hash.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/base/content_hash.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

using Json = nlohmann::json;
using Tokens = std::map<int64_t, std::string>;

constexpr int64_t kMostIds = int64_t{1} << 31;

class TokenizerReader {
 public:
  explicit TokenizerReader(const std::string& path) : path_(path) {}

  absl::StatusOr<Tokens> Read(const Json& tokenizer) const {
    const Json& vocabulary = Member(Member(tokenizer, "model"), "vocab");
    Tokens tokens;
    if (vocabulary.is_object()) {
      for (const auto& [text, id] : vocabulary.items()) FT_RETURN_IF_ERROR(Add(id, text, tokens));
    } else if (vocabulary.is_array()) {
      for (const Json& piece : vocabulary) {
        if (!piece.is_array() || piece.empty() || !piece[0].is_string())
          return Invalid("piece {} of model.vocab has no text", tokens.size());
        tokens.emplace(static_cast<int64_t>(tokens.size()), piece[0].get<std::string>());
      }
    } else {
      return Invalid("model.vocab is neither tokens with ids nor a list of pieces");
    }
    FT_RETURN_IF_ERROR(AddAdded(Member(tokenizer, "added_tokens"), tokens));
    if (tokens.empty()) return Invalid("it has no tokens");
    return tokens;
  }

  template <typename... Args>
  absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(fmt::format("'{}' is no tokenizer.json: {}", path_,
                                                  fmt::format(format, std::forward<Args>(args)...)));
  }

 private:
  // The member of an object; null where there is none, or no object.
  static const Json& Member(const Json& object, const char* name) {
    static const Json kNone;
    const auto found = object.find(name);
    return found == object.end() ? kNone : *found;
  }

  static bool IsId(const Json& id) {
    return id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() < kMostIds;
  }

  absl::Status Add(const Json& id, const std::string& text, Tokens& tokens) const {
    if (!IsId(id)) return Invalid("model.vocab gives {} the id {}", Quote(text), Quote(id.dump()));
    const auto [place, is_new] = tokens.emplace(id.get<int64_t>(), text);
    if (is_new) return absl::OkStatus();
    return Invalid("model.vocab gives id {} to {} and {}", place->first, Quote(place->second), Quote(text));
  }

  absl::Status AddAdded(const Json& added, Tokens& tokens) const {
    if (!added.is_null() && !added.is_array()) return Invalid("added_tokens are no list");
    for (const Json& token : added) {
      const Json &id = Member(token, "id"), &text = Member(token, "content");
      if (!IsId(id) || !text.is_string()) return Invalid("one of added_tokens has no id and content");
      tokens[id.get<int64_t>()] = text.get<std::string>();
    }
    return absl::OkStatus();
  }

  const std::string& path_;
};

void Add(uint32_t number, ContentHash& hash) {
  hash.Update({reinterpret_cast<const uint8_t*>(&number), sizeof(number)});
}

}  // namespace

absl::StatusOr<TokenizerFacts> ReadTokenizer(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kSequential));
  const TokenizerReader reader(path);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const Json tokenizer = Json::parse(text, text + file.bytes().size(), nullptr, /*allow_exceptions=*/false);
  if (tokenizer.is_discarded()) return reader.Invalid("it is no JSON");
  FT_ASSIGN_OR_RETURN(const Tokens tokens, reader.Read(tokenizer));
  ContentHash hash;
  for (const auto& [id, token] : tokens) {
    Add(static_cast<uint32_t>(id), hash);
    Add(static_cast<uint32_t>(token.size()), hash);
    hash.Update({reinterpret_cast<const uint8_t*>(token.data()), token.size()});
  }
  return TokenizerFacts{.hash = fmt::format("{:016x}", hash.Digest()),
                        .vocabulary_size = tokens.rbegin()->first + 1};
}

}  // namespace ft
