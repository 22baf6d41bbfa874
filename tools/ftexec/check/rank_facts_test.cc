#include "tools/ftexec/check/rank_facts.h"

#include "gtest/gtest.h"

namespace ft {
namespace {

TEST(RankFactsTest, FactsComeBack) {
  RankFacts facts;
  facts.findings = {Ok("plan", "gpt2", "x"), Failure("data", absl::NotFoundError("not \xFF there"))};
  facts.fingerprint = "plan=1 lr=2";
  facts.label = "plan.bin";
  facts.together = "1 2";
  facts.has_device = true;
  facts.device = "a GPU";
  facts.threads = 3;
  facts.cpus = {0, 5};
  facts.memory_bytes = uint64_t{1} << 60;
  facts.pools = {{.name = "memory of the host", .system = "boot", .room = 7}};
  facts.address_space = 99;
  facts.shm_bytes = 5;
  const absl::StatusOr<RankFacts> back = DecodeFacts(Encode(facts));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->findings.size(), 2u);
  EXPECT_EQ(back->findings[0].needed, "x");
  EXPECT_EQ(back->findings[1].code, absl::StatusCode::kNotFound);
  EXPECT_EQ(back->findings[1].verdict, Verdict::kFailure);
  EXPECT_EQ(back->fingerprint, facts.fingerprint);
  EXPECT_EQ(back->label, facts.label);
  EXPECT_EQ(back->together, facts.together);
  EXPECT_TRUE(back->has_device);
  EXPECT_EQ(back->device, facts.device);
  EXPECT_EQ(back->threads, 3);
  EXPECT_EQ(back->cpus, facts.cpus);
  EXPECT_EQ(back->memory_bytes, facts.memory_bytes);
  ASSERT_EQ(back->pools.size(), 1u);
  EXPECT_EQ(back->pools[0].system, "boot");
  EXPECT_EQ(back->pools[0].room, 7u);
  EXPECT_EQ(back->address_space, std::optional<uint64_t>(99));
  EXPECT_EQ(back->shm_bytes, 5u);
  EXPECT_FALSE(back->shm_room.has_value());
}

TEST(RankFactsTest, ResultsComeBack) {
  const absl::StatusOr<RankResults> back =
      DecodeResults(Encode(RankResults{.findings = {}, .link_seconds = {1e-6, 2.5}, .compute_seconds = 0.1}));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->link_seconds, (std::vector<double>{1e-6, 2.5}));
  EXPECT_EQ(back->compute_seconds, 0.1);
}

TEST(RankFactsTest, OtherTextIsRefused) {
  const std::string good = Encode(RankFacts{}), results = Encode(RankResults{});
  ASSERT_TRUE(DecodeFacts(good).ok());
  EXPECT_FALSE(DecodeFacts(results).ok());
  EXPECT_FALSE(DecodeResults(good).ok());
  for (const char* text : {"", "{", "[]", "1", "null", "\"x\"", "{\"findings\":1}"}) {
    EXPECT_EQ(DecodeFacts(text).status().code(), absl::StatusCode::kInternal) << text;
    EXPECT_EQ(DecodeResults(text).status().code(), absl::StatusCode::kInternal) << text;
  }
  // Any byte missing, or a number in the place of a text and the other way round.
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(DecodeFacts(good.substr(0, length)).ok()) << length;
  std::string odd = good;
  odd.replace(odd.find("\"threads\":0"), 11, "\"threads\":\"\"");
  EXPECT_FALSE(DecodeFacts(odd).ok());
  EXPECT_FALSE(DecodeResults(R"({"findings":[{"check":"a","verdict":9,"found":"","needed":"","advice":"",)"
                             R"("code":0}],"link_seconds":[],"compute_seconds":0})")
                   .ok());
}

}  // namespace
}  // namespace ft
