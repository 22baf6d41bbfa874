// .ftd files, for tests: well-formed ones, and such that lie with right hashes.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/content_hash.h"
#include "runtime/data/testing/raw.h"

namespace ft {

struct FtdTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

inline uint64_t HashOf(const std::string& bytes) {
  return ContentHashOf({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// A header of these tensors in this order and of `metadata`, to which hashes are added that it does not say.
inline std::string FtdBytes(const std::vector<FtdTensor>& tensors,
                            std::map<std::string, std::string> metadata) {
  constexpr const char* kOwnHash = "xxh64.header";
  const std::string zeros(16, '0');
  std::string places, data;
  for (const FtdTensor& tensor : tensors) {
    metadata.emplace("xxh64." + tensor.name, fmt::format("{:016x}", HashOf(tensor.bytes)));
    places += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", tensor.name,
                          tensor.dtype, fmt::join(tensor.shape, ","), data.size(),
                          data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  const bool hashed = metadata.emplace(kOwnHash, zeros).second;
  std::string header = R"({"__metadata__":{)";
  for (const auto& [key, value] : metadata)
    header += fmt::format(R"({}"{}":"{}")", header.back() == '{' ? "" : ",", key, value);
  header += "}" + places + "}";
  header.resize((8 + header.size() + 63) / 64 * 64 - 8, ' ');
  if (hashed) {
    const std::string before = fmt::format("\"{}\":\"", kOwnHash);
    header.replace(header.find(before) + before.size(), 16, fmt::format("{:016x}", HashOf(header)));
  }
  return Raw(std::vector<uint64_t>{header.size()}) + header + data;
}

// Documents and what else a file may hold; tensors and metadata of it can be changed one by one.
struct FtdParts {
  std::vector<std::vector<uint32_t>> documents;
  int64_t vocabulary_size = 300;
  std::string kind = "text";
  std::vector<uint8_t> mask = {};  // of each token 0 or 1; empty: none
  std::vector<FtdTensor> inputs = {};
  std::map<std::string, std::string> more = {};  // metadata

  std::vector<FtdTensor> Tensors() const {
    std::vector<uint64_t> begins = {0};
    std::vector<uint32_t> wide;
    for (const auto& document : documents) {
      wide.insert(wide.end(), document.begin(), document.end());
      begins.push_back(wide.size());
    }
    std::vector<FtdTensor> made = {{"documents", "U64", {static_cast<int64_t>(begins.size())}, Raw(begins)}};
    const auto count = static_cast<int64_t>(wide.size());
    made.insert(made.end(), inputs.begin(), inputs.end());
    const std::vector<uint16_t> narrow(wide.begin(), wide.end());
    if (vocabulary_size <= 65536) made.push_back({"tokens", "U16", {count}, Raw(narrow)});
    if (vocabulary_size > 65536) made.push_back({"tokens", "U32", {count}, Raw(wide)});
    if (mask.empty()) return made;
    std::vector<uint8_t> bits((mask.size() + 7) / 8);
    for (size_t i = 0; i < mask.size(); ++i) bits[i >> 3] |= static_cast<uint8_t>(mask[i] << (i & 7));
    made.push_back({"loss_mask", "U8", {static_cast<int64_t>(bits.size())}, Raw(bits)});
    return made;
  }

  std::map<std::string, std::string> Metadata() const {
    size_t counted = 0;
    for (const auto& document : documents) counted += document.size();
    if (!mask.empty()) counted = static_cast<size_t>(std::count(mask.begin(), mask.end(), 1));
    std::map<std::string, std::string> made = more;
    made.insert({{"format", "ftd"},
                 {"version", "1"},
                 {"kind", kind},
                 {"tokenizer_hash", ""},
                 {"vocabulary_size", fmt::format("{}", vocabulary_size)},
                 {"counted", fmt::format("{}", counted)}});
    return made;
  }

  std::string Bytes() const { return FtdBytes(Tensors(), Metadata()); }
};

// A vocabulary of the texts, all of which are given but for `special` ones.
inline std::vector<FtdTensor> VocabularyTensors(const std::vector<std::string>& texts,
                                                const std::vector<uint8_t>& special) {
  std::vector<uint32_t> offsets = {0};
  std::string bytes;
  for (const std::string& text : texts) {
    bytes += text;
    offsets.push_back(static_cast<uint32_t>(bytes.size()));
  }
  return {{"vocabulary.offsets", "U32", {static_cast<int64_t>(offsets.size())}, Raw(offsets)},
          {"vocabulary.bytes", "U8", {static_cast<int64_t>(bytes.size())}, bytes},
          {"vocabulary.special", "U8", {static_cast<int64_t>(special.size())}, Raw(special)}};
}

}  // namespace ft
