#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "nlohmann/json.hpp"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/data_identity.h"

namespace ft {
namespace {

using Json = nlohmann::ordered_json;

Json FileJson(const FileIdentity& file) {
  if (file.token_bytes == 0) {
    return {{"path", file.path},
            {"bytes", file.bytes},
            {"examples", file.num_examples},
            {"format", Name(file.format)},
            {"hash", fmt::format("{:016x}", file.content_hash)}};
  }
  Json made = {{"path", file.path},
               {"bytes", file.bytes},
               {"tokens", file.num_tokens},
               {"format", Name(file.format)},
               {"token_bytes", file.token_bytes},
               {"hash", fmt::format("{:016x}", file.content_hash)}};
  if (!file.way.empty()) made["way"] = file.way;
  return made;
}

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("the description of the data is damaged: {}", what));
}

// The member `name` of an object; null where there is none, or no object.
const Json& Member(const Json& object, const char* name) {
  static const Json kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

// Other writers of JSON have nothing but doubles, and write 1e+15.
absl::StatusOr<int64_t> Whole(const Json& object, const char* name, int64_t least) {
  constexpr double kMost = 0x1p53;
  const Json& value = Member(object, name);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (number < static_cast<double>(least) || number > kMost || number != std::floor(number))
    return Malformed(fmt::format("'{}' is no whole number from {} to 2^53", name, least));
  return static_cast<int64_t>(number);
}

absl::StatusOr<std::string> Text(const Json& object, const char* name) {
  const Json& value = Member(object, name);
  if (!value.is_string()) return Malformed(fmt::format("'{}' is no text", name));
  return value.get<std::string>();
}

absl::StatusOr<uint64_t> Hash(const Json& object) {
  FT_ASSIGN_OR_RETURN(const std::string text, Text(object, "hash"));
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Malformed(fmt::format("the hash {} is no 16 hexadecimal digits", Quote(text)));
  return std::stoull(text, nullptr, 16);
}

absl::StatusOr<FileIdentity> FileOf(const Json& object, int64_t seq_len) {
  FileIdentity file;
  FT_ASSIGN_OR_RETURN(file.path, Text(object, "path"));
  FT_ASSIGN_OR_RETURN(const int64_t bytes, Whole(object, "bytes", 0));
  FT_ASSIGN_OR_RETURN(const std::string format, Text(object, "format"));
  FT_ASSIGN_OR_RETURN(file.format, ParseDataFormat(format));
  FT_ASSIGN_OR_RETURN(file.content_hash, Hash(object));
  file.bytes = static_cast<uint64_t>(bytes);
  if (file.format == DataFormat::kSafetensors || file.format == DataFormat::kNpy) {
    file.token_bytes = 0;
    FT_ASSIGN_OR_RETURN(file.num_examples, Whole(object, "examples", 1));
    return file;
  }
  FT_ASSIGN_OR_RETURN(file.num_tokens, Whole(object, "tokens", 0));
  FT_ASSIGN_OR_RETURN(const int64_t width, Whole(object, "token_bytes", 1));
  if (file.format == DataFormat::kAuto || (width != 1 && width != 2 && width != 4))
    return Malformed(fmt::format("there are no files of '{}' with {} bytes a token", format, width));
  if (!Member(object, "way").is_null()) {
    FT_ASSIGN_OR_RETURN(file.way, Text(object, "way"));
    if (file.way != "packed" && file.way != "documents")
      return Malformed(fmt::format("documents cannot be {}", Quote(file.way)));
  }
  if (file.num_tokens > bytes / width || file.num_tokens < (file.way.empty() ? seq_len : 1)) {
    return Malformed(fmt::format("{} cannot have {} tokens, {} bytes each, in {} bytes, and a sequence of {}",
                                 Quote(file.path), file.num_tokens, width, bytes, seq_len));
  }
  file.token_bytes = static_cast<int>(width);
  return file;
}

absl::StatusOr<SourceIdentity> SourceOf(const Json& object, int64_t seq_len) {
  SourceIdentity source;
  if (const Json& weight = Member(object, "weight"); !weight.is_null()) {
    source.weight = weight.is_number() ? weight.get<double>() : NAN;
    if (!(*source.weight > 0) || !std::isfinite(*source.weight))
      return Malformed("a weight is no finite number above 0");
  }
  const Json& files = Member(object, "files");
  if (!files.is_array() || files.empty()) return Malformed("a source has no files");
  for (const Json& file : files) {
    FT_ASSIGN_OR_RETURN(FileIdentity made, FileOf(file, seq_len));
    source.files.push_back(std::move(made));
  }
  return source;
}

}  // namespace

std::string DataIdentityText(const DataIdentity& identity) {
  Json sources = Json::array();
  for (const SourceIdentity& source : identity.sources) {
    Json made = Json::object();
    if (source.weight.has_value()) made["weight"] = *source.weight;
    made["files"] = Json::array();
    for (const FileIdentity& file : source.files) made["files"].push_back(FileJson(file));
    sources.push_back(std::move(made));
  }
  const Json all = {{"seq_len", identity.seq_len}, {"sources", std::move(sources)}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<DataIdentity> ParseDataIdentity(std::string_view text) {
  const Json all = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (all.is_discarded()) return Malformed("it is no JSON");
  DataIdentity identity;
  FT_ASSIGN_OR_RETURN(identity.seq_len, Whole(all, "seq_len", 1));
  const Json& sources = Member(all, "sources");
  if (!sources.is_array() || sources.empty()) return Malformed("it has no sources");
  for (const Json& source : sources) {
    FT_ASSIGN_OR_RETURN(SourceIdentity made, SourceOf(source, identity.seq_len));
    identity.sources.push_back(std::move(made));
  }
  return identity;
}

}  // namespace ft
