#include "runtime/collective/rendezvous/launch_environment.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace ft {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<LaunchEnvironment> Parse(const Variables& variables) {
  return ParseLaunchEnvironment([&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"GROUP_RANK", "1"},
                             {"MASTER_ADDR", "node-a"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "job7"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_ERROR_FILE", "/tmp/error.json"}};

TEST(LaunchEnvironmentTest, NothingSetIsARunOfOneRank) {
  const auto environment = Parse({{"LOCAL_RANK", "3"}});
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->rank, 0);
  EXPECT_EQ(environment->world_size, 1);
}

TEST(LaunchEnvironmentTest, ReadsAllOfTorchrun) {
  const auto environment = Parse(kTorchrun);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 5);
  EXPECT_EQ(environment->world_size, 8);
  EXPECT_EQ(environment->local_rank, 1);
  EXPECT_EQ(environment->local_world_size, 4);
  EXPECT_EQ(environment->group_rank, 1);
  EXPECT_EQ(environment->master_addr, "node-a");
  EXPECT_EQ(environment->master_port, 29500);
  EXPECT_EQ(environment->run_id, "job7");
  EXPECT_EQ(environment->restart_count, 2);
  EXPECT_TRUE(environment->agent_store);
  EXPECT_EQ(environment->error_file, "/tmp/error.json");
}

TEST(LaunchEnvironmentTest, TheFourOfPlainLaunchersAreEnough) {
  const auto environment =
      Parse({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "23456"}});
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_FALSE(environment->agent_store);
  EXPECT_EQ(environment->run_id, "none");
  EXPECT_EQ(environment->local_world_size, 1);
}

TEST(LaunchEnvironmentTest, OnlyExactTrueMeansAnAgentStore) {
  for (const char* text : {"true", "1", "TRUE", "", "False"}) {
    Variables variables = kTorchrun;
    variables["TORCHELASTIC_USE_AGENT_STORE"] = text;
    EXPECT_FALSE(Parse(variables)->agent_store) << text;
  }
}

TEST(LaunchEnvironmentTest, ErrorsNameVariableAndValue) {
  struct Case {
    const char* variable;
    const char* value;  // null: unset
    std::vector<std::string> words;
  };
  const std::vector<Case> cases = {
      {"RANK", nullptr, {"RANK is not set", "WORLD_SIZE='8'", "ftrun"}},
      {"WORLD_SIZE", nullptr, {"WORLD_SIZE is not set", "RANK='5'"}},
      {"RANK", "five", {"RANK='five'", "not a number"}},
      {"RANK", "-1", {"RANK='-1'", "from 0 to 7"}},
      {"RANK", "8", {"RANK='8'", "WORLD_SIZE='8'", "from 0 to 7"}},
      {"RANK", "", {"RANK=''", "not a number"}},
      {"RANK", "99999999999999999999", {"RANK='99999999999999999999'"}},
      {"WORLD_SIZE", "0", {"WORLD_SIZE='0'", "between 1"}},
      {"WORLD_SIZE", "2x", {"WORLD_SIZE='2x'", "not a number"}},
      {"LOCAL_RANK", "4", {"LOCAL_RANK='4'", "LOCAL_WORLD_SIZE='4'"}},
      {"LOCAL_WORLD_SIZE", "9", {"LOCAL_WORLD_SIZE='9'", "between 1 and 8"}},
      {"MASTER_ADDR", nullptr, {"MASTER_ADDR is not set", "8 ranks"}},
      {"MASTER_ADDR", "", {"MASTER_ADDR=''", "empty"}},
      {"MASTER_PORT", nullptr, {"MASTER_PORT is not set"}},
      {"MASTER_PORT", "0", {"MASTER_PORT='0'", "between 1 and 65535"}},
      {"MASTER_PORT", "65536", {"MASTER_PORT='65536'"}},
      {"MASTER_PORT", "http", {"MASTER_PORT='http'", "not a number"}},
      {"TORCHELASTIC_RESTART_COUNT", "often", {"TORCHELASTIC_RESTART_COUNT='often'"}},
  };
  for (const Case& c : cases) {
    Variables variables = kTorchrun;
    variables.erase(c.variable);
    if (c.value != nullptr) variables[c.variable] = c.value;
    const auto environment = Parse(variables);
    ASSERT_TRUE(absl::IsInvalidArgument(environment.status()))
        << c.variable << "=" << (c.value ? c.value : "(unset)");
    const std::string message(environment.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos);
    for (const std::string& word : c.words)
      EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
  }
}

}  // namespace
}  // namespace ft
