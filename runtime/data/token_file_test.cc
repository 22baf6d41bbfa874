#include "runtime/data/token_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/data/testing/raw.h"

namespace ft {
namespace {

std::string U16(const std::vector<uint16_t>& tokens) { return Raw(tokens); }
std::string U32(const std::vector<uint32_t>& tokens) { return Raw(tokens); }

std::string Llmc32(const std::vector<uint32_t>& tokens, int32_t version = 7) {
  int32_t header[256] = {20240801, version, static_cast<int32_t>(tokens.size())};
  return std::string(reinterpret_cast<const char*>(header), sizeof(header)) + U32(tokens);
}

std::string Llmc(const std::vector<uint16_t>& tokens, int32_t magic = 20240520, int32_t version = 1,
                 int32_t count_offset = 0) {
  int32_t header[256] = {magic, version, static_cast<int32_t>(tokens.size()) + count_offset};
  return std::string(reinterpret_cast<const char*>(header), sizeof(header)) + U16(tokens);
}

std::vector<uint16_t> Ascending(int n) {
  std::vector<uint16_t> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(i);
  return tokens;
}

class TokenFileTest : public testing::Test {
 protected:
  // What opening a file with these contents says.
  absl::Status Error(const std::string& name, const std::string& contents, int64_t vocab = 50257,
                     DataFormat format = DataFormat::kAuto) {
    return OpenTokenFile(folder_.Write(name, contents), vocab, format).status();
  }
  DataFormat FormatOf(const std::string& name, const std::string& contents) {
    auto dataset = OpenTokenFile(folder_.Write(name, contents), 65536);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return dataset.ok() ? dataset->format() : DataFormat::kAuto;
  }
  std::string Quoted(const std::string& name) { return "'" + folder_.Path(name) + "'"; }

  TempFolder folder_;
};

void ExpectBadInput(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(ExitStatus(status), kExitBadInput) << status;
  EXPECT_EQ(status.message(), message);
}

std::vector<int64_t> TokensOf(const TokenFile& file) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < file.num_tokens(); ++i) tokens.push_back(file.row().Token(i));
  return tokens;
}

TEST_F(TokenFileTest, TextIsBytes) {
  auto file = OpenTokenFile(folder_.Write("a.txt", "ab\xffghij"), 256);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(TokensOf(*file), (std::vector<int64_t>{'a', 'b', 255, 'g', 'h', 'i', 'j'}));
}

TEST_F(TokenFileTest, UInt16FilesOfBothKinds) {
  for (const std::string& path : {folder_.Write("a.bin", Llmc({5, 50256, 7, 300, 9})),
                                  folder_.Write("a.u16", U16({5, 50256, 7, 300, 9}))}) {
    auto file = OpenTokenFile(path, 50257);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(TokensOf(*file), (std::vector<int64_t>{5, 50256, 7, 300, 9}));
  }
}

TEST_F(TokenFileTest, UInt32FilesOfBothKinds) {
  for (const std::string& path : {folder_.Write("a.bin", Llmc32({5, 128255, 7, 70000, 9})),
                                  folder_.Write("a.u32", U32({5, 128255, 7, 70000, 9}))}) {
    auto file = OpenTokenFile(path, 128256);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->token_bytes(), 4);
    EXPECT_EQ(TokensOf(*file), (std::vector<int64_t>{5, 128255, 7, 70000, 9}));
  }
}

TEST_F(TokenFileTest, RefusesDamagedUInt32Files) {
  const std::vector<uint32_t> tokens = {5, 6, 7, 8, 9, 10};
  ExpectBadInput(Error("a.u32", U32(tokens) + "ab"),
                 Quoted("a.u32") +
                     " has 26 bytes, no multiple of 4, so it does not hold uint32 tokens; it may be cut "
                     "off, or be something else (text: --data-format=text)");
  ExpectBadInput(Error("a.bin", Llmc32(tokens, 1)),
                 Quoted("a.bin") + " has version 1 of llm.c's format of uint32; only version 7 is read");
  ExpectBadInput(
      Error("a.bin", Llmc32(tokens) + "abcd"),
      Quoted("a.bin") +
          " is truncated or damaged: its header promises 6 tokens, 28 bytes follow it, enough for 7");
  ExpectBadInput(Error("a.bin", Llmc32({1, 2, 3, 4, 128256, 5}), 128256),
                 Quoted("a.bin") +
                     ": token 4 has the value 128256, outside the model's vocabulary of 128256 (0 ... "
                     "128255)");
  ExpectBadInput(Error("a.u32", U32({1, 2, 3, 0xffffffff, 4, 5}), 128256),
                 Quoted("a.u32") +
                     ": token 3 has the value 4294967295, outside the model's vocabulary of 128256 (0 "
                     "... 128255)");
}

TEST_F(TokenFileTest, TokensOfAnotherWidthOrOrderAreNamed) {
  std::vector<uint16_t> small;
  std::vector<uint32_t> large;
  for (int i = 0; i < 100; ++i) small.push_back(i % 65);
  for (int i = 0; i < 100; ++i) large.push_back(__builtin_bswap32(i * 7));
  const auto says = [](const absl::Status& status, const std::string& part) {
    EXPECT_EQ(ExitStatus(status), kExitBadInput);
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  };
  says(Error("a.u32", U16(small), 65),
       "token 0 has the value 65536, outside the model's vocabulary of 65 (0 ... 64); "
       "read as uint16 all are inside it (--data-format=u16)");
  says(Error("b.u32", U32(large), 50257),
       "read as big-endian uint32 all are inside it: write them little-endian");
  for (uint16_t& token : small) token = __builtin_bswap16(token);
  says(Error("a.bin", U16(small), 65),
       "read as big-endian uint16 all are inside it: write them little-endian");
  says(Error("c.u16", U32(large), 50257), "but big-endian uint32, by its upper halves; write them");
  EXPECT_TRUE(Error("d.bin", U16(Ascending(65)), 65).ok());
}

TEST_F(TokenFileTest, WhatIsSaidExplicitlyIsDoubtedAloud) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < 64; ++i) tokens.push_back(3 * i);
  const std::string path = folder_.Write("a.bin", U32(tokens));
  const auto wrong = OpenTokenFile(path, 50257, DataFormat::kU16);
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ(wrong->num_tokens(), 128);
  EXPECT_EQ(wrong->doubt(),
            Quoted("a.bin") + " is read as --data-format=u16 has it, but it looks like uint32");
  EXPECT_EQ(OpenTokenFile(path, 50257, DataFormat::kU32)->doubt(), "");
  EXPECT_EQ(OpenTokenFile(path, 50257).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TokenFileTest, FormatIsRecognised) {
  EXPECT_EQ(FormatOf("a.bin", Llmc(Ascending(9))), DataFormat::kLlmc);
  EXPECT_EQ(FormatOf("a", Llmc(Ascending(9))), DataFormat::kLlmc);
  EXPECT_EQ(FormatOf("b.bin", U16(Ascending(9))), DataFormat::kU16);
  EXPECT_EQ(FormatOf("b.u16", U16(Ascending(900))), DataFormat::kU16);
  EXPECT_EQ(FormatOf("b.u32", U32({1, 2, 3, 4})), DataFormat::kU32);
  EXPECT_EQ(OpenTokenFile(folder_.Write("b.md", "words"), 256)->format(), DataFormat::kText);
}

TEST_F(TokenFileTest, FormatCanBeForced) {
  const std::string path = folder_.Write("a.bin", Llmc(Ascending(8)));
  EXPECT_EQ(OpenTokenFile(path, 65536, DataFormat::kText)->num_tokens(), 1024 + 16);
  EXPECT_EQ(OpenTokenFile(path, 65536, DataFormat::kU16)->num_tokens(), 512 + 8);
  ExpectBadInput(
      Error("t.txt", std::string(2000, 'x'), 256, DataFormat::kLlmc),
      Quoted("t.txt") + " is no llm.c token file: it begins with 2021161080 instead of 20240520 or 20240801");
  ExpectBadInput(Error("t.txt", "xyz", 256, DataFormat::kLlmc),
                 Quoted("t.txt") + " has 3 bytes, less than the 1024 of an llm.c header");
}

TEST_F(TokenFileTest, FormatWords) {
  for (DataFormat format :
       {DataFormat::kAuto, DataFormat::kText, DataFormat::kLlmc, DataFormat::kU16, DataFormat::kU32}) {
    EXPECT_EQ(*ParseDataFormat(Name(format)), format);
  }
  EXPECT_EQ(
      ParseDataFormat("txt").status().message(),
      "unknown data format 'txt'; choose auto, text, llmc, u16, u32, megatron, ftd, npy or safetensors");
}

TEST_F(TokenFileTest, MissingFileIsAnIoError) {
  const absl::Status status = OpenTokenFile(folder_.Path("none.txt"), 256).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ExitStatus(status), kExitIo);
  EXPECT_EQ(status.message(), "cannot open " + Quoted("none.txt") + ": No such file or directory");
}

TEST_F(TokenFileTest, RefusesEmptyFiles) {
  ExpectBadInput(Error("a.txt", ""), Quoted("a.txt") + " is empty");
}

TEST_F(TokenFileTest, RefusesDamagedUInt16Files) {
  ExpectBadInput(Error("a.u16", "abcdefghijk"),
                 Quoted("a.u16") +
                     " has 11 bytes, an odd number, so it does not hold uint16 tokens; it may be cut off, or "
                     "be something else (text: --data-format=text)");
  ExpectBadInput(Error("a.bin", Llmc(Ascending(9), 20240520, 1, 1)),
                 Quoted("a.bin") +
                     " is truncated or damaged: its header promises 10 tokens, 18 bytes follow it, "
                     "enough for 9");
  ExpectBadInput(Error("a.bin", Llmc(Ascending(9), 20240520, 1, -1)),
                 Quoted("a.bin") +
                     " is truncated or damaged: its header promises 8 tokens, 18 bytes follow it, "
                     "enough for 9");
  ExpectBadInput(Error("a.bin", Llmc(Ascending(9), 20240520, 1, -100)),
                 Quoted("a.bin") +
                     " is truncated or damaged: its header promises -91 tokens, 18 bytes follow it, "
                     "enough for 9");
  ExpectBadInput(Error("a.bin", Llmc(Ascending(9), 20240520, 2)),
                 Quoted("a.bin") + " has version 2 of llm.c's format of uint16; only version 1 is read");
}

TEST_F(TokenFileTest, RefusesTokensOutsideTheVocabulary) {
  ExpectBadInput(
      Error("a.bin", Llmc(Ascending(9)), 8),
      Quoted("a.bin") + ": token 8 has the value 8, outside the model's vocabulary of 8 (0 ... 7)");
  EXPECT_TRUE(Error("a.bin", Llmc(Ascending(9)), 9).ok());
  std::vector<uint16_t> tokens(200'000, 3);
  tokens[199'999] = 65535;
  tokens[131'072] = 50257;
  ExpectBadInput(
      Error("a.u16", U16(tokens)),
      Quoted("a.u16") +
          ": token 131072 has the value 50257, outside the model's vocabulary of 50257 (0 ... 50256)");
  ExpectBadInput(
      Error("a.txt", "plain\xe4text", 128, DataFormat::kText),
      Quoted("a.txt") + ": token 5 has the value 228, outside the model's vocabulary of 128 (0 ... 127)");
  ExpectBadInput(Error("a.u16", U16({65535, 1, 2, 3, 4, 5}), 65535),
                 Quoted("a.u16") +
                     ": token 0 has the value 65535, outside the model's vocabulary of 65535 (0 ... 65534)");
  EXPECT_TRUE(Error("a.u16", U16({65535, 1, 2, 3, 4, 5}), 65536).ok());
  EXPECT_EQ(ExitStatus(Error("a.txt", "abcdef", 0)), kExitBadInput);
}

}  // namespace
}  // namespace ft
