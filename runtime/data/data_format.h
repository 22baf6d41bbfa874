// How a data file spells its tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ft {

// --data-format=auto|text|llmc|u16|u32|megatron|ftd|npy|safetensors.
//   kText  every byte is a token
//   kLlmc  llm.c's .bin: a header of 256 little-endian int32 (magic, version, number of tokens, zeros), then
//          the tokens, little-endian: uint16 (magic 20240520, version 1) or uint32 (magic 20240801, version
//          7)
//   kU16   little-endian uint16 tokens and nothing else
//   kU32   little-endian uint32 tokens and nothing else
//   kMegatron  Megatron-LM's .bin of integers and the .idx beside it, which says their type and where
//          documents begin (megatron_index.h)
//   kFtd   documents of tokens, masks and other inputs (ftd_file.h)
//   kNpy   a folder of NumPy's arrays for each input of the model, no tokens (npy_folder.h)
//   kSafetensors  a tensor for each input of the model, no tokens
//   kAuto  IsNpyFolder(), IsFtdFile(), IsTensorFile(), IsMegatronFile() and RecogniseFormat() find out
enum class DataFormat { kAuto, kText, kLlmc, kU16, kU32, kMegatron, kFtd, kNpy, kSafetensors };

inline constexpr int32_t kLlmcMagic16 = 20240520;
inline constexpr int32_t kLlmcMagic32 = 20240801;

// InvalidArgument for any other word, listing those there are.
absl::StatusOr<DataFormat> ParseDataFormat(std::string_view word);
std::string_view Name(DataFormat format);

// Whether the file begins with one of llm.c's magic numbers, whatever follows.
bool HasLlmcMagic(absl::Span<const uint8_t> bytes);

// What kAuto takes `bytes`, all of the file `path`, for: kLlmc by its magic, whatever the name. (As uint16
// tokens the magics would read 55672, 308 and 55953, 308, which no real file begins with.) Else kU32 for a
// name in .u32, kU16 for one in .u16 or .bin; else kText, for models whose vocabulary are the 256 bytes.
// InvalidArgument (65), one line that says what the file is and what to do: a known kind of file that is none
// of these (FileKind); JSON records; UTF-16; bytes that are no text; text under a name of tokens; uint16 that
// are really wider tokens; text for a model with another vocabulary than bytes. An explicit --data-format is
// taken at its word instead, and doubted aloud.
absl::StatusOr<DataFormat> RecogniseFormat(const std::string& path, absl::Span<const uint8_t> bytes,
                                           int64_t vocab_size);

// What speaks against `format`, which was asked for: that `bytes` are a known kind of file, text, or tokens
// of another width. Empty: nothing.
std::string DoubtAbout(const std::string& path, absl::Span<const uint8_t> bytes, DataFormat format,
                       int64_t vocab_size);

}  // namespace ft
