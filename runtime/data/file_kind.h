// Kinds of files that are no token files, known by the bytes that they begin and end with.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace ft {

struct FileKind {
  std::string_view name;  // "a NumPy array"
  std::string_view what_to_do;
};

// Null for bytes of no known kind. Signatures are long enough (or checked against other bytes of the file)
// not to occur by chance among tokens, and hold what text does not.
const FileKind* FindFileKind(absl::Span<const uint8_t> bytes);

bool IsSafetensors(absl::Span<const uint8_t> bytes);

// Whether the first line with anything in it is one JSON object, or an array of objects.
bool BeginsWithJsonRecord(std::string_view text);

// Where bytes stop being text: the first NUL, or the first other control character where more than one byte
// in 20 is one. -1: they may be text, in UTF-8, Latin-1 or any other encoding that extends ASCII. Of large
// files the ends and evenly spread blocks are looked at.
int64_t FindBinary(absl::Span<const uint8_t> bytes);

// Whether bytes are text without doubt: UTF-8 without control characters, at least 16 bytes, judged by the
// first 64 KiB.
bool IsPlainText(absl::Span<const uint8_t> bytes);

}  // namespace ft
