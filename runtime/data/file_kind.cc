#include "runtime/data/file_kind.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "nlohmann/json.hpp"

namespace ft {
namespace {

using Bytes = absl::Span<const uint8_t>;
using namespace std::string_view_literals;

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kExtract =
    "write its tokens as uint16 or uint32 (--data-format=u16|u32), or its text";
constexpr std::string_view kNoTokens = "it holds no tokens";
constexpr std::string_view kConvertText = "convert it (iconv -t UTF-8)";

bool Holds(Bytes bytes, size_t offset, std::string_view part) {
  return part.empty() || (bytes.size() >= offset + part.size() &&
                          std::memcmp(bytes.data() + offset, part.data(), part.size()) == 0);
}

bool EndsWith(Bytes bytes, std::string_view part) {
  return bytes.size() >= part.size() && Holds(bytes, bytes.size() - part.size(), part);
}

struct Signature {
  FileKind kind;
  std::string_view begin;
  size_t offset = 0;              // where `begin` stands
  std::string_view end = {};      // what the file also ends with
  bool (*also)(Bytes) = nullptr;  // what else must hold
};

// Deflate, and none of the reserved flags (RFC 1952).
bool IsGzip(Bytes bytes) { return bytes.size() >= 18 && (bytes[3] & 0xe0) == 0; }

// Protocols 2 to 5 (PEP 307, 3154, 574); from 4 on a frame follows.
bool IsPickle(Bytes bytes) {
  if (bytes.size() < 4 || bytes[1] < 2 || bytes[1] > 5 || bytes.back() != '.') return false;
  return bytes[1] < 4 ? std::strchr("}])(cqXKMGNIU\x8a\x8c", bytes[2]) != nullptr : bytes[2] == 0x95;
}

bool IsJpeg(Bytes bytes) { return bytes.size() > 4 && bytes[3] >= 0xc0 && EndsWith(bytes, "\xff\xd9"); }
bool IsVersioned(Bytes bytes) { return bytes.size() > 8 && bytes[4] < 16 && bytes[5] == 0 && bytes[6] == 0; }
bool IsBzip2(Bytes bytes) { return Holds(bytes, 4, "\x31\x41\x59\x26\x53\x59"); }
bool IsRiff(Bytes bytes) {
  return Holds(bytes, 8, "WAVE") || Holds(bytes, 8, "WEBP") || Holds(bytes, 8, "AVI ");
}

const Signature kSignatures[] = {
    {{"a plan of ftc", "name the data after --data"}, "FTPLAN\r\n"sv},
    {{"a NumPy array (.npy)",
      "write its tokens alone: array.astype('<u4').tofile('tokens.u32'); arrays for inputs of a model are "
      "read "
      "from a folder of them"},
     "\x93NUMPY"sv},
    {{"a Parquet file", kExtract}, "PAR1"sv, 0, "PAR1"sv},
    {{"an Arrow file", kExtract}, "ARROW1\0\0"sv},
    {{"a Feather file", kExtract}, "FEA1"sv, 0, "FEA1"sv},
    {{"an HDF5 file", kExtract}, "\x89HDF\r\n\x1a\n"sv},
    {{"a safetensors file", "weights are given with --init"}, ""sv, 0, {}, IsSafetensors},
    {{"a GGUF file", kNoTokens}, "GGUF"sv, 0, {}, IsVersioned},
    {{"the index of a Megatron data set (.idx)", "name the .bin beside it"}, "MMIDIDX\0\0"sv},
    {{"a Python pickle", kExtract}, "\x80"sv, 0, {}, IsPickle},
    {{"an SQLite database", kExtract}, "SQLite format 3\0"sv},
    {{"an Avro file", kExtract}, "Obj\x01"sv},
    {{"a zip archive (.zip, .npz, .pt)", kUnpack}, "PK\x03\x04"sv},
    {{"a zip archive (.zip, .npz, .pt)", kUnpack}, "PK\x05\x06"sv},
    {{"compressed by gzip", kUnpack}, "\x1f\x8b\x08"sv, 0, {}, IsGzip},
    {{"compressed by zstd", kUnpack}, "\x28\xb5\x2f\xfd"sv},
    {{"compressed by xz", kUnpack}, "\xfd\x37zXZ\0"sv},
    {{"compressed by bzip2", kUnpack}, "BZh"sv, 0, {}, IsBzip2},
    {{"compressed by lz4", kUnpack}, "\x04\x22\x4d\x18"sv},
    {{"compressed by snappy", kUnpack}, "\xff\x06\x00\x00sNaPpY"sv},
    {{"a 7z archive", kUnpack}, "7z\xbc\xaf\x27\x1c"sv},
    {{"a rar archive", kUnpack}, "Rar!\x1a\x07"sv},
    {{"a tar archive", kUnpack},
     "ustar"sv,
     257,
     {},
     [](Bytes b) { return b.size() > 262 && (b[262] == 0 || b[262] == ' '); }},
    {{"a PDF document", "extract its text"}, "%PDF-"sv},
    {{"a program or library (ELF)", kNoTokens},
     "\x7f"
     "ELF"sv},
    {{"a PNG image", kNoTokens}, "\x89PNG\r\n\x1a\n"sv},
    {{"a JPEG image", kNoTokens}, "\xff\xd8\xff"sv, 0, {}, IsJpeg},
    {{"a GIF image", kNoTokens}, "GIF89a"sv},
    {{"a GIF image", kNoTokens}, "GIF87a"sv},
    {{"a TIFF image", kNoTokens}, "II*\0\x08\0\0\0"sv},
    {{"a TIFF image", kNoTokens}, "MM\0*\0\0\0\x08"sv},
    {{"a WAVE, WebP or AVI file", kNoTokens}, "RIFF"sv, 0, {}, IsRiff},
    {{"an MP4 film", kNoTokens}, "ftyp"sv, 4, {}, [](Bytes b) { return b[0] == 0 && b[1] == 0; }},
    {{"an Ogg file", kNoTokens}, "OggS\0"sv},
    {{"a FLAC file", kNoTokens}, "fLaC\0"sv},
    {{"text in UTF-32", kConvertText},
     "\xff\xfe\0\0"sv,
     0,
     {},
     [](Bytes b) { return b.size() % 4 == 0 && b.size() > 7 && b[7] == 0; }},
    {{"text in UTF-32", kConvertText}, "\0\0\xfe\xff\0"sv},
};

constexpr int64_t kBlock = int64_t{1} << 16;
constexpr int64_t kWhole = 64 * (int64_t{1} << 20);  // up to here every byte is looked at

bool IsControl(uint8_t byte) {
  // Text has backspace, tab, line feed, vertical tab, form feed, carriage return and escape.
  return byte < 0x20 ? byte < 8 || (byte > 13 && byte != 27) : byte == 0x7f;
}

// Of the bytes from `begin` on; -1: none.
int64_t FindNul(Bytes bytes, int64_t begin, int64_t count) {
  const void* nul = std::memchr(bytes.data() + begin, 0, static_cast<size_t>(count));
  return nul == nullptr ? -1 : static_cast<const uint8_t*>(nul) - bytes.data();
}

// The length of the UTF-8 sequence at `at` (RFC 3629), 0 for none. One that is cut by the end counts as
// whole.
size_t Utf8Length(Bytes bytes, size_t at) {
  const uint8_t first = bytes[at];
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : (first & 0xf0) == 0xe0        ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  for (size_t i = 1; i < length && at + i < bytes.size(); ++i) {
    if ((bytes[at + i] & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

// A header of JSON, as long as the first eight bytes say.
bool IsSafetensors(Bytes bytes) {
  if (bytes.size() < 10 || bytes[8] != '{') return false;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length < 2 || length > bytes.size() - 8) return false;
  const uint8_t last = bytes[8 + length - 1];
  return last == '}' || last == ' ';
}

const FileKind* FindFileKind(Bytes bytes) {
  for (const Signature& signature : kSignatures) {
    if (Holds(bytes, signature.offset, signature.begin) && EndsWith(bytes, signature.end) &&
        (signature.also == nullptr || signature.also(bytes)))
      return &signature.kind;
  }
  return nullptr;
}

bool BeginsWithJsonRecord(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) return false;
  text.remove_prefix(begin);
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line[0] == '[' && line.find_first_not_of(" \t", 1) != line.find('{', 1)) return false;
  constexpr size_t kLongest = size_t{1} << 24;  // what is longer and begins with a key is taken for a record
  if (line.size() <= kLongest)
    return line.find('{') != std::string_view::npos && nlohmann::json::accept(line);
  const size_t brace = line.find('{'), quote = line.find_first_not_of(" \t", brace + 1);
  return brace != std::string_view::npos && quote != std::string_view::npos && line[quote] == '"' &&
         line.find("\":", quote + 1) < 256;
}

int64_t FindBinary(Bytes bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (size <= kWhole) {
    if (const int64_t nul = FindNul(bytes, 0, size); nul >= 0) return nul;
  } else {
    const int64_t blocks = kWhole / kBlock;
    for (int64_t i = 0; i < blocks; ++i) {  // the first one at the beginning, the last one at the end
      const int64_t begin = static_cast<int64_t>(static_cast<double>(size - kBlock) * static_cast<double>(i) /
                                                 static_cast<double>(blocks - 1));
      if (const int64_t nul = FindNul(bytes, begin, kBlock); nul >= 0) return nul;
    }
  }
  const Bytes head = bytes.first(std::min(size, kBlock));
  const int64_t controls = std::count_if(head.begin(), head.end(), IsControl);
  if (controls * 20 <= static_cast<int64_t>(head.size())) return -1;
  return std::find_if(head.begin(), head.end(), IsControl) - head.begin();
}

bool IsPlainText(Bytes bytes) {
  const Bytes head = bytes.first(std::min<size_t>(bytes.size(), kBlock));
  if (head.size() < 16) return false;
  for (size_t at = 0; at < head.size();) {
    const size_t length = Utf8Length(head, at);
    if (length == 0 || IsControl(head[at])) return false;
    at += length;
  }
  return true;
}

}  // namespace ft
