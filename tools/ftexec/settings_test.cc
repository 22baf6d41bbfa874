// Where the settings of a run come from, and what happens when ranks have different ones.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "tools/ftexec/testing/process_for_test.h"

namespace ft {
namespace {

std::string FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), length);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  close(fd);
  return std::to_string(ntohs(address.sin_port));
}

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "to be or not to be, "[i * 7 % 20];
    folder_.Write("text.txt", text);
  }

  std::vector<std::string> Arguments(const proto::Plan& plan, const std::vector<std::string>& more) const {
    const std::string path = folder_.Path("plan.bin");
    EXPECT_TRUE(WritePlan(plan, path).ok());
    std::vector<std::string> arguments = {FTEXEC, path, "--data=" + folder_.Path("text.txt"),
                                          "--progress=off", "--threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The learning rates of a run.
  std::vector<double> Rates(const proto::Plan& plan, std::vector<std::string> more) const {
    const std::string metrics = folder_.Path("m.jsonl");
    more.push_back("--metrics=" + metrics);
    TestProcess process(folder_, "alone", Arguments(plan, more));
    EXPECT_EQ(process.Wait(), 0) << process.err();
    std::vector<double> rates;
    std::istringstream lines(TempFolder::Read(metrics));
    for (std::string line; std::getline(lines, line);) rates.push_back(nlohmann::json::parse(line)["lr"]);
    return rates;
  }

  static void ExpectOneLineWith(const std::string& words, const std::string& text) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  }

  void ExpectDisagreement(const std::vector<std::vector<std::string>>& options,
                          const std::vector<std::string>& words) const;

  TempFolder folder_;
};

proto::Plan PlanWithSettings() {
  proto::Plan plan = TinyPlan();
  const std::pair<const char*, double> numbers[] = {{"lr", 0.04}, {"steps", 4}, {"warmup_steps", 2}};
  for (const auto& [name, value] : numbers) {
    proto::Attribute* setting = plan.add_settings();
    setting->set_name(name);
    setting->set_f(value);
  }
  proto::Attribute* schedule = plan.add_settings();
  schedule->set_name("lr_schedule");
  schedule->set_s("linear");
  return plan;
}

TEST_F(SettingsTest, FlagsComeBeforeThePlan) {
  const proto::Plan plan = PlanWithSettings();
  EXPECT_EQ(Rates(plan, {}), (std::vector<double>{0, 0.02, 0.04, 0.02}));
  EXPECT_EQ(Rates(plan, {"--lr=0.08", "--steps=3"}), (std::vector<double>{0, 0.04, 0.08}));
  EXPECT_EQ(Rates(plan, {"--lr-schedule=constant", "--warmup-ratio=0"}), std::vector<double>(4, 0.04));
  EXPECT_EQ(Rates(TinyPlan(), {"--steps=2"}), std::vector<double>(2, 3e-4));
}

TEST_F(SettingsTest, ASettingThatMakesNoSenseIsBadInput) {
  proto::Plan plan = PlanWithSettings();
  plan.mutable_settings(1)->set_f(1.5);
  TestProcess process(folder_, "alone", Arguments(plan, {}));
  EXPECT_EQ(process.Wait(), 65);
  ExpectOneLineWith("setting 'steps' of the plan: expected a whole number, got 1.5", process.err());
  TestProcess above(folder_, "alone", Arguments(TinyPlan(), {"--lr=0.1", "--min-lr=0.2"}));
  EXPECT_EQ(above.Wait(), 65);
  ExpectOneLineWith("min_lr is 0.2; expected 0 or more, not above lr, which is 0.1", above.err());
}

TEST_F(SettingsTest, EvaluationNeedsItsProgram) {
  TestProcess process(folder_, "alone",
                      Arguments(TinyPlan(), {"--steps=1", "--eval-data=" + folder_.Path("text.txt")}));
  EXPECT_EQ(process.Wait(), 65);
  ExpectOneLineWith("the plan has no program 'eval_step'", process.err());
}

// Starts two ranks with options of their own; both must end with bad input that says `words`.
void SettingsTest::ExpectDisagreement(const std::vector<std::vector<std::string>>& options,
                                      const std::vector<std::string>& words) const {
  const std::string port = FreePort();
  std::vector<std::unique_ptr<TestProcess>> ranks;
  for (const size_t rank : {0, 1}) {
    std::vector<std::string> more = options[rank];
    more.push_back("--steps=2");
    const std::string number = std::to_string(rank);
    ranks.push_back(std::make_unique<TestProcess>(
        folder_, "rank" + number, Arguments(TinyPlan(), more),
        std::vector<std::pair<std::string, std::string>>{{"RANK", number},
                                                         {"WORLD_SIZE", "2"},
                                                         {"LOCAL_RANK", number},
                                                         {"LOCAL_WORLD_SIZE", "2"},
                                                         {"MASTER_ADDR", "127.0.0.1"},
                                                         {"MASTER_PORT", port}}));
  }
  for (auto& rank : ranks) {
    EXPECT_EQ(rank->Wait(), 65);
    for (const std::string& word : words) ExpectOneLineWith(word, rank->err());
  }
}

TEST_F(SettingsTest, RanksThatDisagreeSayInWhat) {
  ExpectDisagreement({{"--seed=0"}, {"--seed=1"}},
                     {"ranks differ in seed: 0 on rank 0 (", "), 1 on rank 1 ("});
}

// Who replays a step takes part in its collectives once more.
TEST_F(SettingsTest, RanksThatDoNotAllReplayAreRefused) {
  ExpectDisagreement({{"--find-nan=on"}, {"--find-nan=off"}},
                     {"ranks differ in find_nan: on on rank 0 (", "), off on rank 1 ("});
}

// All ranks meet once more to join their traces.
TEST_F(SettingsTest, ATraceOfOneRankAloneIsRefused) {
  ExpectDisagreement({{"--trace=" + folder_.Path("trace.json")}, {}},
                     {"ranks differ in trace_steps: 3 on rank 0 ("});
}

// While a rank traces, it enqueues what the others have recorded.
TEST_F(SettingsTest, TracesOfDifferentLengthAreRefused) {
  const std::string trace = "--trace=" + folder_.Path("trace.json");
  ExpectDisagreement({{trace, "--trace-steps=1"}, {trace, "--trace-steps=2"}},
                     {"ranks differ in trace_steps: 1 on rank 0 ("});
}

}  // namespace
}  // namespace ft
