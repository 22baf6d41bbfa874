#include "runtime/data/data_format.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/data/testing/raw.h"

namespace ft {
namespace {

using namespace std::string_literals;

absl::Span<const uint8_t> Span(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

template <typename T>
std::string Tokens(int64_t vocab_size, int count = 400) {
  std::mt19937 random(7);
  std::vector<T> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<T>(random() % static_cast<uint64_t>(vocab_size)));
  return Raw(tokens);
}

std::string Encoded(const std::string& text, bool wide, bool big_endian) {
  std::string bytes;
  for (const char c : text) {
    const std::string zeros(wide ? 3 : 1, '\0');
    bytes += big_endian ? zeros + c : c + zeros;
  }
  return bytes;
}

const std::string kProse =
    "It is a truth universally acknowledged, that a single man in possession\nof a good fortune, must be in "
    "want of a wife.\n";

// What auto takes it for; the message where it is refused.
std::string Taken(const std::string& name, const std::string& bytes, int64_t vocab = 256) {
  const absl::StatusOr<DataFormat> format = RecogniseFormat(name, Span(bytes), vocab);
  if (format.ok()) return std::string(Name(*format));
  EXPECT_EQ(ExitStatus(format.status()), kExitBadInput);
  const std::string message(format.status().message());
  EXPECT_EQ(message.rfind("'" + name + "' ", 0), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

bool Says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(RecogniseFormat, TextIsForByteVocabularies) {
  EXPECT_EQ(Taken("a.txt", kProse), "text");
  EXPECT_EQ(Taken("a", kProse), "text");
  for (const int64_t vocab : {50257, 255, 257, 32000})
    EXPECT_EQ(Taken("a.txt", kProse, vocab),
              "'a.txt' is taken for text, a byte a token, but the model's vocabulary is " +
                  std::to_string(vocab) +
                  ", not 256; tokenize it (.bin and .u16 name uint16 tokens, .u32 uint32 ones), or say "
                  "--data-format=text to train on its bytes as they are");
}

TEST(RecogniseFormat, TextOfAllKinds) {
  EXPECT_EQ(Taken("a.txt", "\xef\xbb\xbf" + kProse), "text");  // a byte-order mark
  EXPECT_EQ(Taken("a.txt",
                  "Gr\xfc\xdf"
                  "e aus K\xf6ln, \xe0 la carte"),
            "text");  // Latin-1
  EXPECT_EQ(Taken("a.txt", "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82"), "text");
  EXPECT_EQ(Taken("a.txt", "\x93\xfa\x96{\x8c\xea\x82\xcc\x95\xb6\x8f\xcd"), "text");  // Shift JIS
  EXPECT_EQ(Taken("a.log", "\x1b[31mred\x1b[0m\x07 text with a bell and \x0c" + kProse), "text");
  EXPECT_EQ(Taken("a.c", "{\n  int a[] = {1, 2};\n}\n"), "text");
  EXPECT_EQ(Taken("a.py", "[1, 2, 3]\nprint()\n"), "text");
  EXPECT_EQ(Taken("a.tex", "{\\bf bold}\n"), "text");
  EXPECT_EQ(Taken("a.txt", "PAR1 is a gene. " + kProse), "text");
  EXPECT_EQ(Taken("a.txt", "RIFF, GGUF, Obj, BZh9, ARROW1, ID3, fLaC, OggS. " + kProse), "text");
  EXPECT_EQ(Taken("a.csv", "id,text\n1,\"{}\"\n"), "text");
}

TEST(RecogniseFormat, JsonRecords) {
  const std::string record = "{\"text\": \"a \\\"b\\\" {\", \"id\": [1, {}]}\n{\"text\": \"c\"}\n";
  for (const std::string& name : {"a.jsonl"s, "a.txt"s, "a"s, "a.ndjson"s})
    EXPECT_TRUE(Says(Taken(name, record), "holds JSON")) << name;
  EXPECT_TRUE(Says(Taken("a.txt", "\xef\xbb\xbf\r\n  " + record), "holds JSON"));
  EXPECT_TRUE(Says(Taken("a.txt", "[{\"text\": \"a\"}, {\"text\": \"b\"}]"), "holds JSON"));
  EXPECT_TRUE(Says(Taken("a.jsonl", kProse), "holds JSON"));
  EXPECT_TRUE(Says(Taken("a.json", "{\n \"a\": 1\n}\n"), "holds JSON"));
  EXPECT_TRUE(Says(Taken("a.txt", "{\"text\": \"" + std::string(20 << 20, 'x') + "\"}\n"), "holds JSON"));
  EXPECT_TRUE(Says(Taken("a.txt", record, 50257), "holds JSON"));
}

TEST(RecogniseFormat, KnownKindsOfFiles) {
  const std::string body = Tokens<uint32_t>(1000);
  const std::string header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  const std::pair<std::string, std::string> files[] = {
      {"\x93NUMPY\x01\0v\0{'descr': '<u2'}"s + body, "a NumPy array"},
      {"PAR1" + body + "PAR1", "a Parquet file"},
      {"\x1f\x8b\x08\0"s + body, "compressed by gzip"},
      {"\x28\xb5\x2f\xfd" + body, "compressed by zstd"},
      {"\xfd\x37zXZ\0"s + body, "compressed by xz"},
      {"BZh91AY&SY" + body, "compressed by bzip2"},
      {"PK\x03\x04" + body, "a zip archive"},
      {"ARROW1\0\0"s + body, "an Arrow file"},
      {"FEA1" + body + "FEA1", "a Feather file"},
      {"\x89HDF\r\n\x1a\n" + body, "an HDF5 file"},
      {std::string(1, static_cast<char>(header.size())) + "\0\0\0\0\0\0\0"s + header + body,
       "a safetensors file"},
      {"\x80\x04\x95" + body + ".", "a Python pickle"},
      {"\x80\x02]q\x01" + body + ".", "a Python pickle"},
      {"SQLite format 3\0"s + body, "an SQLite database"},
      {"%PDF-1.7\n" + body, "a PDF document"},
      {"\x7f"
       "ELF\x02\x01\x01" +
           body,
       "a program or library"},
      {"\x89PNG\r\n\x1a\n" + body, "a PNG image"},
      {"\xff\xd8\xff\xe0" + body + "\xff\xd9", "a JPEG image"},
      {"GIF89a" + body, "a GIF image"},
      {"RIFF1234WAVE" + body, "a WAVE"},
      {"GGUF\x03\0\0\0\1"s + body, "a GGUF file"},
      {"MMIDIDX\0\0\1"s + body, "the index of a Megatron data set"},
      {"FTPLAN\r\n\x1a\n\0\0"s + body, "a plan of ftc"},
      {std::string(257, 'a') + "ustar\0"s + body, "a tar archive"}};
  for (const auto& [bytes, what] : files) {
    for (const std::string& name : {"a"s, "a.txt"s, "a.bin"s, "a.u32"s}) {
      const std::string message = Taken(name, bytes);
      EXPECT_TRUE(Says(message, "is " + what) && Says(message, ", which is not read; ")) << message;
    }
    EXPECT_TRUE(Says(DoubtAbout("a", Span(bytes), DataFormat::kText, 256), what)) << what;
  }
}

TEST(RecogniseFormat, OtherBinaryFiles) {
  std::string nul = kProse;
  nul[40] = '\0';
  EXPECT_EQ(Taken("a.txt", nul),
            "'a.txt' is neither text (byte 40 is 0) nor named as tokens; for these say --data-format=u16 or "
            "u32, or say "
            "--data-format=text to train on its bytes as they are");
  EXPECT_TRUE(Says(Taken("a.dat", Tokens<uint16_t>(50257)), "neither text"));
  EXPECT_TRUE(Says(Taken("a.dat", "abc\x01\x02\x03\x04\x05"), "byte 3 is 1"));
  for (const int64_t vocab : {256, 50257, 151936})
    EXPECT_TRUE(Says(Taken("a.dat", Tokens<uint32_t>(vocab), vocab), "holds uint32 tokens")) << vocab;
  // Too short for what their beginnings have them be.
  EXPECT_TRUE(Says(Taken("a.txt", std::string(256, '\x01') + "austar"), "neither text"));
  EXPECT_EQ(Taken("a.txt", "{" + std::string((1 << 24) + 4096, ' ')), "text");
  std::string large(100 << 20, 'x');  // of which not every byte is looked at
  EXPECT_EQ(Taken("a.txt", large), "text");
  large.back() = '\0';
  EXPECT_TRUE(Says(Taken("a.txt", large), "byte 104857599 is 0"));
}

TEST(RecogniseFormat, Utf16AndUtf32) {
  for (const bool big_endian : {false, true}) {
    const std::string mark = big_endian ? "\xfe\xff" : "\xff\xfe";
    EXPECT_EQ(Taken("a.txt", mark + Encoded(kProse, false, big_endian)),
              "'a.txt' is text in UTF-16; convert it (iconv -t UTF-8)");
    EXPECT_TRUE(Says(Taken("a.txt", Encoded(kProse, false, big_endian)), "every other byte: text in UTF-16"));
  }
  EXPECT_TRUE(Says(Taken("a.txt",
                         "\xff\xfe"
                         "\x4b\x4e\xf7\x8b"),
                   "UTF-16"));  // Chinese: no NUL
  EXPECT_TRUE(Says(Taken("a.txt", "\xff\xfe\0\0"s + Encoded(kProse, true, false)), "UTF-32"));
  EXPECT_TRUE(Says(Taken("a.txt", "\0\0\xfe\xff"s + Encoded(kProse, true, true)), "UTF-32"));
}

TEST(RecogniseFormat, NamesOfTokens) {
  for (const int64_t vocab : {2, 65, 256, 50257, 65536, 151936}) {
    EXPECT_EQ(Taken("a.bin", Tokens<uint16_t>(std::min<int64_t>(vocab, 65536)), vocab), "u16");
    EXPECT_EQ(Taken("a.u16", Tokens<uint16_t>(std::min<int64_t>(vocab, 65536)), vocab), "u16");
    EXPECT_EQ(Taken("a.u32", Tokens<uint32_t>(vocab), vocab), "u32");
    EXPECT_EQ(Taken("a.bin", Tokens<uint32_t>(vocab), vocab),
              "'a.bin' does not hold uint16 tokens, as its name has it, but uint32, by its upper halves; say "
              "--data-format=u32, or --data-format=u16 if they are uint16 all the same");
    EXPECT_TRUE(Says(Taken("a.u16", Tokens<int64_t>(vocab), vocab), "64-bit integers"));
    EXPECT_TRUE(Says(Taken("a.u32", Tokens<int64_t>(vocab), vocab), "64-bit integers"));
    EXPECT_EQ(DoubtAbout("a.bin", Span(Tokens<uint32_t>(vocab)), DataFormat::kU16, vocab),
              "'a.bin' is read as --data-format=u16 has it, but it looks like uint32");
    EXPECT_EQ(DoubtAbout("a.bin", Span(Tokens<uint32_t>(vocab)), DataFormat::kU32, vocab), "");
  }
}

TEST(RecogniseFormat, TextUnderANameOfTokens) {
  for (const std::string& name : {"a.bin"s, "a.u16"s, "a.u32"s}) {
    EXPECT_TRUE(Says(Taken(name, kProse, 50257), "but is text")) << name;
    EXPECT_TRUE(Says(Taken(name,
                           "Gr\xc3\xbc\xc3\x9f"
                           "e aus K\xc3\xb6ln und anderswo"),
                     "but is text"))
        << name;
  }
  EXPECT_TRUE(Says(DoubtAbout("a", Span(kProse), DataFormat::kU16, 256), "looks like text"));
  EXPECT_EQ(DoubtAbout("a", Span(kProse), DataFormat::kText, 50257), "");
}

TEST(RecogniseFormat, LlmcByItsMagic) {
  for (const int32_t magic : {20240520, 20240801}) {
    const std::string bytes = Raw(std::vector<int32_t>{magic, 1, 0}) + std::string(2000, '\0');
    EXPECT_EQ(Taken("a.txt", bytes, 50257), "llmc");
    EXPECT_TRUE(Says(DoubtAbout("a", Span(bytes), DataFormat::kU16, 65536), "llm.c"));
  }
}

}  // namespace
}  // namespace ft
