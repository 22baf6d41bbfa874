#include "runtime/plan/plan_file.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

std::string Bytes() { return *SerializePlan(TinyPlan()); }

std::string ErrorOf(const std::string& bytes, absl::StatusCode code) {
  const auto parsed = ParsePlan(bytes, "p.bin");
  EXPECT_EQ(parsed.status().code(), code) << parsed.status();
  EXPECT_EQ(ExitStatus(parsed.status()), kExitBadInput);
  const std::string message(parsed.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.rfind("'p.bin' ", 0), 0u) << message;
  return message;
}

bool Says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(PlanFileTest, RoundTrip) {
  const auto parsed = ParsePlan(Bytes(), "p.bin");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->plan.version(), kPlanVersion);
  EXPECT_EQ(*SerializePlan(parsed->plan), Bytes());
  EXPECT_EQ(parsed->hash, PlanHash(std::string_view(Bytes()).substr(kPlanHeaderBytes)));
}

TEST(PlanFileTest, HashTellsPlansApart) {
  EXPECT_NE(ParsePlan(Bytes(), "a")->hash, ParsePlan(*SerializePlan(TinyPlan({.shard = false})), "b")->hash);
}

TEST(PlanFileTest, EveryTruncationIsRefused) {
  const std::string bytes = Bytes();
  EXPECT_TRUE(Says(ErrorOf("", absl::StatusCode::kInvalidArgument), "is empty"));
  for (size_t size :
       {size_t{1}, size_t{10}, size_t{31}, kPlanHeaderBytes, bytes.size() / 2, bytes.size() - 1}) {
    EXPECT_TRUE(Says(ErrorOf(bytes.substr(0, size), absl::StatusCode::kDataLoss), "is cut short")) << size;
  }
}

TEST(PlanFileTest, EveryChangedByteIsNoticed) {
  const std::string bytes = Bytes();
  for (size_t at = 0; at < bytes.size(); at += at < kPlanHeaderBytes ? 1 : 7) {
    std::string damaged = bytes;
    damaged[at] ^= 0x20;
    EXPECT_FALSE(ParsePlan(damaged, "p.bin").ok()) << "byte " << at;
  }
}

TEST(PlanFileTest, ForeignFilesAreRefused) {
  EXPECT_TRUE(Says(ErrorOf("\x7f"
                           "ELF and more of it, long enough for a header",
                           absl::StatusCode::kInvalidArgument),
                   "is not a plan"));
  EXPECT_TRUE(Says(ErrorOf("module { }\n", absl::StatusCode::kInvalidArgument), "ftc compile"));
  std::string text_mode = Bytes();
  text_mode.erase(6, 1);
  EXPECT_TRUE(Says(ErrorOf(text_mode, absl::StatusCode::kDataLoss), "copy it as binary"));
  EXPECT_TRUE(Says(ErrorOf(Bytes() + "x", absl::StatusCode::kDataLoss), "is too long"));
}

TEST(PlanFileTest, OtherVersionsAreRefused) {
  std::string bytes = Bytes();
  bytes[12] = kPlanVersion + 1;
  EXPECT_TRUE(Says(ErrorOf(bytes, absl::StatusCode::kInvalidArgument), "newer ftc"));
  for (const char old : {0, 1, static_cast<int>(kPlanVersion) - 1}) {
    bytes[12] = old;
    EXPECT_TRUE(Says(ErrorOf(bytes, absl::StatusCode::kInvalidArgument), "compile the model again"));
  }
}

// Groups inside groups, of a field that no message has, with a right hash: parsing must not recurse as deep
// as a file asks.
TEST(PlanFileTest, DeepNestingIsRefused) {
  std::string payload;
  for (int level = 0; level < 1'000'000; ++level) payload += "\xa3\x06";  // field 100 begins a group
  std::string bytes = Bytes().substr(0, kPlanHeaderBytes);
  const uint64_t length = payload.size(), hash = PlanHash(payload);
  bytes.replace(16, 8, reinterpret_cast<const char*>(&length), 8);
  bytes.replace(24, 8, reinterpret_cast<const char*>(&hash), 8);
  EXPECT_TRUE(
      Says(ErrorOf(bytes + payload, absl::StatusCode::kDataLoss), "does not hold a well-formed plan"));
}

TEST(PlanFileTest, ReadsWhatItWrote) {
  const TempFolder folder;
  const std::string path = folder.Path("plan.bin");
  ASSERT_TRUE(WritePlan(TinyPlan(), path).ok());
  const auto read = ReadPlan(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->plan.model(), "bigram");
}

TEST(PlanFileTest, MissingFileIsAnIoError) {
  const auto read = ReadPlan("/no/such/plan.bin");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ExitStatus(read.status()), kExitIo);
}

}  // namespace
}  // namespace ft
