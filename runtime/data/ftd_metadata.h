// What the header of a .ftd file says beside where its tensors lie.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/data/ftd_file.h"

namespace ft {

struct FtdMetadata {
  FtdKind kind = FtdKind::kText;
  int64_t vocabulary_size = 0;
  int64_t counted = 0;
  std::string tokenizer_hash;
  std::optional<int64_t> bos, eos, pad;
  std::map<std::string, uint64_t> hashes;  // of each tensor, by its name
};

// Whether it says that it is one.
bool IsFtdMetadata(const HeaderMetadata& metadata);

// `header` is the text that `metadata` comes from, whose hash it says. Errors: DataLoss for another hash,
// InvalidArgument for all else; one line that names `path` and the key.
absl::StatusOr<FtdMetadata> ReadFtdMetadata(const HeaderMetadata& metadata, std::string_view header,
                                            const std::string& path);

// 16 lower-case hexadecimal digits.
bool IsHash(std::string_view text);

}  // namespace ft
