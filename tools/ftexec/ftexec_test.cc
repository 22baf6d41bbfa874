// ftexec as users meet it: options, files, exit statuses, lost ranks. The plan is made by hand, so no
// compiler is needed.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "tools/ftexec/testing/process_for_test.h"

namespace ft {
namespace {

constexpr int kSignalled = 1000;

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), length);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  close(fd);
  return ntohs(address.sin_port);
}

class FtexecTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WritePlan(TinyPlan({.shard = true}), plan_).ok());
    ASSERT_TRUE(WritePlan(TinyPlan({.shard = false}), folder_.Path("whole.bin")).ok());
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "to be or not to be, "[i * 7 % 20];
    folder_.Write("text.txt", text);
  }

  std::vector<std::string> Arguments(const std::string& plan, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {FTEXEC, plan, "--data=" + folder_.Path("text.txt"),
                                          "--progress=off", "--threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Alone, to its end.
  int Run(const std::vector<std::string>& arguments) {
    TestProcess process(folder_, "alone", arguments);
    const int status = process.Wait();
    out_ = process.out();
    err_ = process.err();
    return status;
  }

  // Ranks of one run, started together. plans: one for all, or one for each.
  std::vector<std::unique_ptr<TestProcess>> Start(int ranks, const std::vector<std::string>& more,
                                                  std::vector<std::string> plans = {}) {
    std::vector<std::unique_ptr<TestProcess>> processes;
    const std::string port = std::to_string(FreePort()), size = std::to_string(ranks);
    plans.resize(ranks, plan_);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string name = std::to_string(rank);
      processes.push_back(
          std::make_unique<TestProcess>(folder_, "rank" + name, Arguments(plans[rank], more),
                                        std::vector<std::pair<std::string, std::string>>{
                                            {"RANK", name},
                                            {"WORLD_SIZE", size},
                                            {"LOCAL_RANK", name},
                                            {"LOCAL_WORLD_SIZE", size},
                                            {"MASTER_ADDR", "127.0.0.1"},
                                            {"MASTER_PORT", port},
                                            {"TORCHELASTIC_ERROR_FILE", folder_.Path("error" + name)}}));
    }
    return processes;
  }

  // Waits until the run has written a step's metrics.
  bool WaitForSteps(const std::string& metrics) {
    for (int i = 0; i < 6000; ++i) {
      if (!TempFolder::Read(metrics).empty()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  // Lines of a metrics file.
  static std::vector<nlohmann::json> Metrics(const std::string& path) {
    std::vector<nlohmann::json> lines;
    std::istringstream file(TempFolder::Read(path));
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  static bool OneLine(const std::string& text) {
    return std::count(text.begin(), text.end(), '\n') == 1 && text.back() == '\n';
  }

  TempFolder folder_;
  const std::string plan_ = folder_.Path("plan.bin");
  std::string out_, err_;
};

TEST_F(FtexecTest, TrainsAndReports) {
  const std::string metrics = folder_.Path("m.jsonl");
  ASSERT_EQ(Run(Arguments(plan_, {"--steps=20", "--lr=0.05", "--metrics=" + metrics})), 0) << err_;
  EXPECT_EQ(err_, "");
  EXPECT_NE(out_.find("model bigram, 6144 parameters; strategy full_shard, 1 rank"), std::string::npos)
      << out_;
  const auto lines = Metrics(metrics);
  ASSERT_EQ(lines.size(), 20u);
  EXPECT_EQ(lines[19]["step"], 19);
  EXPECT_LT(lines[19]["loss"], 0.8 * lines[0]["loss"].get<double>());
  EXPECT_EQ(lines[0]["arena_bytes"], BindPlan(TinyPlan(), {1, 1}, DeviceClass::kCpu)->arena_bytes());
}

TEST_F(FtexecTest, ProgressIsPlainLinesInAFile) {
  std::vector<std::string> arguments = Arguments(plan_, {"--steps=3"});
  std::erase(arguments, "--progress=off");
  ASSERT_EQ(Run(arguments), 0) << err_;
  EXPECT_NE(out_.find("step 1/3"), std::string::npos) << out_;
  EXPECT_NE(out_.find("step 3/3"), std::string::npos) << out_;
  EXPECT_EQ(out_.find('\r'), std::string::npos);
}

TEST_F(FtexecTest, WrongUsageIsStatus2) {
  const std::string data = "--data=" + folder_.Path("text.txt");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{FTEXEC}, "plan is required"},
      {{FTEXEC, plan_}, "--data is missing"},
      {{FTEXEC, plan_, data, "--stepz=3"}, "unknown option '--stepz', did you mean '--steps'?"},
      {{FTEXEC, plan_, data, "--device=nul"}, "unknown value 'nul', did you mean 'null'?"},
      {{FTEXEC, plan_, data, "--shuffle=maybe"}, "expected one of: on, off"},
      {{FTEXEC, plan_, data, "--steps=-1"}, "--steps"},
      {{FTEXEC, plan_, data, "--grace=-1"}, "--grace"},
      {{FTEXEC, plan_, data, "--grace=nan"}, "--grace"},
      {{FTEXEC, plan_, data, "--world-size=2"}, "--world-size is for --device=null"},
      {{FTEXEC, plan_, data, "--mesh=2x2"}, "a mesh is written replica:R,shard:S, not '2x2'"},
      {{FTEXEC, plan_, data, "--emulate-link=10"}, "wants GBPS,US"},
      {{FTEXEC, plan_, data, "--emulate-link=0,5"}, "wants GBPS,US"},
      {{FTEXEC, plan_, data, "--emulate-link=nan,5"}, "wants GBPS,US"},
      {{FTEXEC, plan_, "--device=null", "--mesh=shard:4", "--world-size=2"},
       "has 4 ranks, but --world-size is 2"},
      {{FTEXEC, plan_, "--device=null", "--save-weights=x"}, "--save-weights makes no sense"},
      {{FTEXEC, plan_, data, "--device=cuda", "--instruction-set=generic"},
       "--instruction-set is for --device=cpu"},
      {{FTEXEC, plan_, data, "--tf32=on"}, "--tf32 is for --device=cuda"},
      {{FTEXEC, plan_, data, "--device=cuda", "--cuda-graph=maybe"}, "expected one of: on, off"},
      {{FTEXEC, plan_, data, "--lr-schedule=cosin"}, "did you mean 'cosine'?"},
      {{FTEXEC, plan_, data, "--warmup-ratio=2"}, "--warmup-ratio"},
      {{FTEXEC, plan_, data, "--warmup-ratio=0.1", "--warmup-steps=2"}, "--warmup-"},
      {{FTEXEC, plan_, data, "--max-bad-steps=0"}, "--max-bad-steps"},
      {{FTEXEC, plan_, data, "--eval-steps=2"}, "--eval-steps needs --eval-data"},
  };
  for (const auto& [arguments, message] : cases) {
    EXPECT_EQ(Run(arguments), 2) << message;
    EXPECT_NE(err_.find(message), std::string::npos) << err_;
    EXPECT_TRUE(OneLine(err_)) << err_;
  }
}

TEST_F(FtexecTest, HelpNamesEveryOption) {
  ASSERT_EQ(Run({FTEXEC, "--help"}), 0);
  for (const char* option :
       {"--data",         "--steps",        "--device",       "--threads",      "--seed",
        "--lr",           "--shuffle",      "--init",         "--save-weights", "--metrics",
        "--trace",        "--trace-steps",  "--progress",     "--log-dir",      "--data-format",
        "--comm-backend", "--timeout",      "--world-size",   "--mesh",         "--emulate-link",
        "--lr-schedule",  "--warmup-steps", "--warmup-ratio", "--min-lr",       "--max-bad-steps",
        "--eval-data",    "--eval-every",   "--eval-steps",   "--grace"}) {
    EXPECT_NE(out_.find(option), std::string::npos) << option;
  }
}

TEST_F(FtexecTest, BadInputIsOneLineAndNoFile) {
  const std::string bytes = TempFolder::Read(plan_), metrics = folder_.Path("m.jsonl"),
                    weights = folder_.Path("w.safetensors");
  const std::vector<std::string> outputs = {"--metrics=" + metrics, "--save-weights=" + weights};
  const auto with = [&](const std::string& option) {
    return std::vector<std::string>{outputs[0], outputs[1], option};
  };
  struct Case {
    std::vector<std::string> arguments;
    int status;
    std::string message;
  };
  ASSERT_TRUE(WritePlan(TinyPlan({.vocab = 100}), folder_.Path("vocab100.bin")).ok());
  const std::vector<Case> cases = {
      {Arguments(folder_.Write("short.bin", bytes.substr(0, bytes.size() / 2)), outputs), 65, "is cut short"},
      {Arguments(folder_.Write("damaged.bin", bytes.substr(0, 100) + "!" + bytes.substr(101)), outputs), 65,
       "is damaged"},
      {Arguments(folder_.Write("empty.bin", ""), outputs), 65, "is empty"},
      {Arguments(folder_.Path("text.txt"), outputs), 65, "is not a plan"},
      {Arguments(folder_.Path("none.bin"), outputs), 74, "No such file"},
      {Arguments(plan_, with("--data=" + folder_.Write("empty.txt", ""))), 65, "empty"},
      {Arguments(plan_, with("--data=" + folder_.Write("short.txt", "abc"))), 65, "short"},
      {Arguments(folder_.Path("vocab100.bin"), outputs), 65, "vocabulary"},
      {Arguments(plan_, with("--init=" + folder_.Write("bad.safetensors", "not at all"))), 65,
       "bad.safetensors"},
      {Arguments(plan_, {"--save-weights=/no/such/folder/w"}), 74, "/no/such/folder"},
  };
  for (const Case& c : cases) {
    // The later --data wins; CLI11 would refuse two.
    std::vector<std::string> arguments = c.arguments;
    if (std::count_if(arguments.begin(), arguments.end(),
                      [](const std::string& a) { return a.rfind("--data=", 0) == 0; }) == 2) {
      arguments.erase(arguments.begin() + 2);
    }
    EXPECT_EQ(Run(arguments), c.status) << c.message << ": " << err_;
    EXPECT_NE(err_.find(c.message), std::string::npos) << err_;
    EXPECT_TRUE(OneLine(err_)) << err_;
    EXPECT_FALSE(std::filesystem::exists(weights));
  }
}

TEST_F(FtexecTest, ImpossibleRanksAreRefused) {
  TestProcess beyond(
      folder_, "beyond", Arguments(plan_, {}),
      {{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(beyond.Wait(), 65);
  EXPECT_NE(beyond.err().find("RANK='2'"), std::string::npos) << beyond.err();
  TestProcess missing(folder_, "missing", Arguments(plan_, {}), {{"WORLD_SIZE", "2"}});
  EXPECT_EQ(missing.Wait(), 65);
  EXPECT_NE(missing.err().find("RANK is not set"), std::string::npos) << missing.err();
}

TEST_F(FtexecTest, DifferentPlansAreRefusedOnEveryRank) {
  auto ranks = Start(2, {}, {plan_, folder_.Path("whole.bin")});
  for (auto& rank : ranks) {
    EXPECT_EQ(rank->Wait(), 65);
    EXPECT_NE(rank->err().find("different plans"), std::string::npos) << rank->err();
  }
}

TEST_F(FtexecTest, SeveralRanksMakeOneTraceAndOneWeightsFile) {
  const std::string trace = folder_.Path("trace.json"), weights = folder_.Path("w.safetensors");
  auto ranks = Start(
      3, {"--steps=4", "--trace=" + trace, "--save-weights=" + weights, "--log-dir=" + folder_.Path("logs")});
  for (auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->err();
  const auto events = nlohmann::json::parse(TempFolder::Read(trace))["traceEvents"];
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(std::any_of(events.begin(), events.end(), [&](const auto& event) {
      return event["pid"] == rank && event["name"] == "update";
    }));
    EXPECT_NE(TempFolder::Read(folder_.Path("logs/rank" + std::to_string(rank) + ".log")).find("step 4/4"),
              std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder_.Path("trace.rank" + std::to_string(rank) + ".json")));
  }
  EXPECT_EQ(std::filesystem::file_size(weights) / 1000, 2u * 256 * 12 * 4 / 1000);
}

TEST_F(FtexecTest, TwoAxesRunOnTheMeshAskedFor) {
  const std::string hybrid = folder_.Path("hybrid.bin"), m = folder_.Path("m.jsonl");
  ASSERT_TRUE(WritePlan(TinyPlan({.two_axes = true, .offload = true}), hybrid).ok());
  const auto losses = [&](const std::string& plan, const std::vector<std::string>& more,
                          const std::string& mesh) {
    std::vector<std::string> options = {"--steps=5", "--lr=0.05", "--metrics=" + m};
    options.insert(options.end(), more.begin(), more.end());
    auto ranks = Start(4, options, {plan, plan, plan, plan});
    for (auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->err();
    EXPECT_NE(ranks[0]->out().find(mesh), std::string::npos) << ranks[0]->out();
    std::vector<double> all;
    for (const auto& line : Metrics(m)) all.push_back(line["loss"]);
    return all;
  };
  const std::vector<double> one_axis = losses(plan_, {}, "(replica 1 x shard 4)");
  EXPECT_EQ(one_axis.size(), 5u);
  EXPECT_EQ(losses(hybrid, {"--mesh=replica:2,shard:2"}, "(replica 2 x shard 2)"), one_axis);
  EXPECT_EQ(losses(hybrid, {}, "(replica 1 x shard 4)"), one_axis) << "by default a node holds all shards";
}

TEST_F(FtexecTest, AMeshThatDoesNotFitIsRefusedInOneLine) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{plan_, "--mesh=replica:2,shard:2"}, "--mesh=replica:2,shard:2 has 4 ranks, but the run has 1"},
      {{plan_, "--device=null", "--mesh=replica:2,shard:2"},
       "strategy full_shard shards over all ranks, but the mesh has 2 ranks on the replica axis"},
  };
  for (const auto& [arguments, message] : cases) {
    EXPECT_EQ(Run(Arguments(arguments[0], {arguments.begin() + 1, arguments.end()})), 65) << message;
    EXPECT_NE(err_.find(message), std::string::npos) << err_;
    EXPECT_TRUE(OneLine(err_)) << err_;
  }
}

TEST_F(FtexecTest, AnEmulatedLinkSlowsStepsAndIsTold) {
  const std::string metrics = folder_.Path("m.jsonl"), trace = folder_.Path("trace.json");
  // Four collectives a step: one gather, and three reductions that follow each other on their stream.
  auto ranks = Start(2, {"--steps=3", "--metrics=" + metrics, "--trace=" + trace, "--emulate-link=10,20000"});
  for (auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->err();
  EXPECT_NE(ranks[0]->out().find("over an emulated link of 10 Gb/s and 20000 us"), std::string::npos)
      << ranks[0]->out();
  for (const auto& line : Metrics(metrics)) EXPECT_GE(line["step_ms"], 4 * 20.0);
  const std::string text = TempFolder::Read(trace);
  EXPECT_NE(text.find("emulated link of 10 Gb/s and 20000 us"), std::string::npos);
  for (const auto& event : nlohmann::json::parse(text)["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != "all_gather bigram") continue;
    EXPECT_GE(event["dur"], 20000.0);
  }
}

TEST_F(FtexecTest, MemoryBeyondTheArenasIsReportedAndDoesNotGrowWithThem) {
  const std::string large = folder_.Path("large.bin"), phrase = "resident beyond the arenas: ";
  const proto::Plan plan = TinyPlan({.hidden = 3072});
  ASSERT_TRUE(WritePlan(plan, large).ok());
  ASSERT_GT(BindPlan(plan, {1, 1}, DeviceClass::kCpu)->arena_bytes(), uint64_t{30} << 20);
  double mib[2];
  for (const bool is_large : {false, true}) {
    ASSERT_EQ(Run(Arguments(is_large ? large : plan_, {"--steps=3"})), 0) << err_;
    const size_t first = out_.find(phrase), last = out_.rfind(phrase);
    ASSERT_NE(first, std::string::npos) << out_;
    EXPECT_NE(first, last) << "before the first step and at the end";
    mib[is_large] = std::stod(out_.substr(last + phrase.size()));
    EXPECT_GT(mib[is_large], 0.5);
    EXPECT_LT(mib[is_large], 64);  // code and libraries, the stacks of a thread for each stream, small things
  }
  EXPECT_NEAR(mib[0], mib[1], 8)
      << "neither kernels nor the executor hold anything that grows with the model";
}

TEST_F(FtexecTest, DivergenceStopsAllRanksAfterTheMetrics) {
  const std::string metrics = folder_.Path("m.jsonl");
  auto ranks = Start(2, {"--steps=50", "--lr=1e38", "--metrics=" + metrics});
  for (auto& rank : ranks) {
    EXPECT_EQ(rank->Wait(), 65);
    EXPECT_NE(rank->err().find("training has diverged"), std::string::npos) << rank->err();
  }
  const auto lines = Metrics(metrics);
  ASSERT_FALSE(lines.empty());
  EXPECT_LT(lines.size(), 50u);
  EXPECT_TRUE(lines.back().contains("loss_nonfinite") || lines.back().contains("grad_norm_nonfinite"))
      << lines.back();
}

class LostRankTest : public FtexecTest, public testing::WithParamInterface<const char*> {};

TEST_P(LostRankTest, TheOthersEndSoonAndNameIt) {
  for (int victim : {0, 2}) {
    const std::string metrics = folder_.Path("m" + std::to_string(victim));
    auto ranks =
        Start(3, {"--steps=100000000", "--metrics=" + metrics, std::string("--comm-backend=") + GetParam()});
    ASSERT_TRUE(WaitForSteps(metrics)) << ranks[0]->err();
    ranks[victim]->Signal(SIGKILL);
    for (int rank = 0; rank < 3; ++rank) {
      const int status = ranks[rank]->Wait(5);
      EXPECT_EQ(status, rank == victim ? kSignalled + SIGKILL : 75) << ranks[rank]->err();
      if (rank == victim) continue;
      const std::string name = "rank " + std::to_string(victim) + " was lost";
      EXPECT_NE(ranks[rank]->err().find(name), std::string::npos) << ranks[rank]->err();
      EXPECT_TRUE(OneLine(ranks[rank]->err())) << ranks[rank]->err();
      const auto error =
          nlohmann::json::parse(TempFolder::Read(folder_.Path("error" + std::to_string(rank))));
      EXPECT_NE(error["message"]["message"].get<std::string>().find(name), std::string::npos);
      EXPECT_TRUE(error["message"]["extraInfo"].contains("timestamp"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LostRankTest, testing::Values("shm", "gloo"));

TEST_F(FtexecTest, SignalsAreRaisedAgainAndLeaveNoFiles) {
  for (int number : {SIGTERM, SIGINT}) {
    const std::string metrics = folder_.Path("m" + std::to_string(number)),
                      weights = folder_.Path("w.safetensors");
    auto ranks = Start(2, {"--steps=100000000", "--metrics=" + metrics, "--save-weights=" + weights});
    ASSERT_TRUE(WaitForSteps(metrics)) << ranks[0]->err();
    ranks[1]->Signal(number);
    EXPECT_EQ(ranks[1]->Wait(15), kSignalled + number) << ranks[1]->err();
    EXPECT_EQ(ranks[0]->Wait(15), 75);
    EXPECT_NE(ranks[0]->err().find("rank 1 failed: ended by signal"), std::string::npos) << ranks[0]->err();
    EXPECT_FALSE(std::filesystem::exists(weights));
    for (const auto& file : std::filesystem::directory_iterator(folder_.Path(""))) {
      EXPECT_EQ(file.path().string().find(".tmp"), std::string::npos) << file.path();
    }
  }
}

TEST_F(FtexecTest, ASignalWhileWaitingForOthersEndsAtOnce) {
  TestProcess lonely(folder_, "lonely", Arguments(plan_, {}),
                     {{"RANK", "0"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", std::to_string(FreePort())}});
  EXPECT_EQ(lonely.Wait(0.5), -1);
  lonely.Signal(SIGTERM);
  EXPECT_EQ(lonely.Wait(1), kSignalled + SIGTERM);
}

TEST_F(FtexecTest, TheNullDeviceWalksAnyWorldSize) {
  ASSERT_EQ(Run({FTEXEC, plan_, "--device=null", "--world-size=4096", "--steps=2"}), 0) << err_;
  EXPECT_NE(out_.find("4096 ranks"), std::string::npos) << out_;
  EXPECT_NE(
      out_.find("arena " + std::to_string(BindPlan(TinyPlan(), {1, 4096}, DeviceClass::kCpu)->arena_bytes()) +
                " bytes"),
      std::string::npos)
      << out_;
  EXPECT_NE(out_.find("simulated step"), std::string::npos) << out_;
}

TEST_F(FtexecTest, IsLean) {
  ASSERT_EQ(Run({"/usr/bin/env", "ldd", FTEXEC}), 0) << err_;
  for (const char* heavy : {"MLIR", "LLVM", "python"})
    EXPECT_EQ(out_.find(heavy), std::string::npos) << heavy;
}

}  // namespace
}  // namespace ft
