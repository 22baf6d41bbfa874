// ftrun's parts, and ftrun itself with small shell scripts as ranks.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tools/ftrun/options.h"
#include "tools/ftrun/output_merger.h"
#include "tools/ftrun/rank_environment.h"
#include "tools/ftrun/supervisor.h"

namespace ft::run {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ParsedOptions Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ftrun");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

TEST(OptionsTest, BothSpellingsAndTheProgramsOwnOptions) {
  for (const char* nproc : {"--nproc-per-node=3", "--nproc_per_node=3"}) {
    const ParsedOptions parsed =
        Parse({nproc, "--master_port", "29511", "ftexec", "plan.bin", "--steps=3", "--log-dir=x"});
    ASSERT_TRUE(parsed.run);
    EXPECT_EQ(parsed.options.nproc_per_node, 3);
    EXPECT_EQ(parsed.options.master_port, 29511);
    EXPECT_EQ(parsed.options.log_dir, "");
    EXPECT_TRUE(parsed.options.prefix);
    EXPECT_EQ(parsed.options.command,
              (std::vector<std::string>{"ftexec", "plan.bin", "--steps=3", "--log-dir=x"}));
  }
  EXPECT_FALSE(Parse({"true"}).options.prefix);
  EXPECT_EQ(Parse({"--standalone", "true"}).options.master_port, 0);
}

TEST(OptionsTest, UsageErrorsExitWithTwo) {
  const std::vector<std::vector<const char*>> wrong = {
      {},
      {"--nproc-per-node=0", "true"},
      {"--nproc-per-node=two", "true"},
      {"--nproc-per-node=2x", "true"},
      {"--nproc-per-nod=2", "true"},
      {"--nnodes=2", "--node-rank=2", "--master-addr=a", "true"},
      {"--nnodes=2", "true"},
      {"--nnodes=2", "--master-addr=a", "--master-port=0", "true"},
      {"--master-port=70000", "true"},
      {"--grace=-1", "true"},
      {"--grace=nan", "true"},
      {"--grace=soon", "true"},
  };
  for (const auto& arguments : wrong) {
    const ParsedOptions parsed = Parse(arguments);
    EXPECT_FALSE(parsed.run) << (arguments.empty() ? "" : arguments[0]);
    EXPECT_EQ(parsed.exit_status, 2);
  }
  EXPECT_EQ(Parse({"--help"}).exit_status, 0);
}

TEST(RankEnvironmentTest, IsTorchruns) {
  Options options;
  options.nproc_per_node = 4;
  options.nnodes = 2;
  options.node_rank = 1;
  options.master_addr = "node-a";
  options.run_id = "job7";
  const auto environment =
      RankEnvironment({"PATH=/bin", "RANK=9", "TORCHELASTIC_ERROR_FILE=x"}, options, 2, 3, 29500, 10);
  const auto has = [&](const char* variable) {
    return std::find(environment.begin(), environment.end(), variable) != environment.end();
  };
  for (const char* variable :
       {"PATH=/bin", "RANK=6", "WORLD_SIZE=8", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=1",
        "MASTER_ADDR=node-a", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=job7", "TORCHELASTIC_RESTART_COUNT=3",
        "TORCHELASTIC_USE_AGENT_STORE=True", "OMP_NUM_THREADS=2"}) {
    EXPECT_TRUE(has(variable)) << variable;
  }
  EXPECT_FALSE(has("RANK=9"));
  EXPECT_FALSE(has("TORCHELASTIC_ERROR_FILE=x"));
  const auto inherited = RankEnvironment({"OMP_NUM_THREADS=7"}, options, 0, 0, 29500, 1);
  EXPECT_NE(std::find(inherited.begin(), inherited.end(), "OMP_NUM_THREADS=7"), inherited.end());
}

TEST(OutputMergerTest, LinesStayWhole) {
  std::string text;
  MergedOutput output([&](absl::string_view bytes) { text.append(bytes.data(), bytes.size()); }, false);
  LineSource a("[a] ", &output), b("[b] ", &output);
  a.Write("one\ntw");
  b.Write("three\n\n");
  a.Write("o\r\nstep 1\rstep 2\r");
  a.Write("end");
  a.Finish();
  EXPECT_EQ(text, "[a] one\n[b] three\n[b] \n[a] two\n[a] step 1\n[a] step 2\n[a] end\n");
}

TEST(OutputMergerTest, ProgressIsRewrittenOnATerminal) {
  std::string text;
  MergedOutput output([&](absl::string_view bytes) { text.append(bytes.data(), bytes.size()); }, true);
  LineSource a("[a] ", &output), b("[b] ", &output);
  a.Write("\rstep 1");
  a.Write("\rstep 2");
  b.Write("hello\n");
  a.Write("\rstep 3\n");
  EXPECT_EQ(text,
            "[a] step 1\x1b[K\r[a] step 1\x1b[K\r[a] step 2\x1b[K\n[b] hello\n[a] step 2\x1b[K\r[a] step "
            "3\x1b[K\n");
}

TEST(SupervisorTest, RootCauseIsNotALostPeer) {
  const auto exited = [](int rank, int status) { return RankEnd{rank, 100 + rank, status << 8}; };
  EXPECT_FALSE(RootCause({}).has_value());
  EXPECT_EQ(RootCause({exited(0, 75), exited(2, 65), exited(1, 1)})->rank, 2);
  EXPECT_EQ(RootCause({exited(3, 75), exited(1, 75)})->rank, 3);
  EXPECT_EQ(RootCause({exited(0, 75), {1, 101, SIGKILL}})->rank, 1);
  EXPECT_EQ(ExitStatusOf({1, 101, SIGKILL}), 137);
  // Ranks that saved and ended are no cause of anything.
  EXPECT_EQ(RootCause({exited(0, 143), exited(2, 74), exited(1, 75)})->rank, 2);
  EXPECT_EQ(RootCause({exited(0, 143), exited(1, 75)})->rank, 1);
  EXPECT_EQ(RootCause({exited(0, 143), exited(1, 143)})->rank, 0);
  EXPECT_EQ(RootCause({exited(0, 75), {1, 101, SIGTERM}})->rank, 1);
}

// One call of the program.
struct Result {
  int status = 0;  // as of waitpid
  std::string out, err;
  milliseconds time{};
};

class FtrunTest : public ::testing::Test {
 protected:
  FtrunTest() : folder_(std::filesystem::temp_directory_path() / ("ftrun_test-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FtrunTest() override { std::filesystem::remove_all(folder_); }

  pid_t Start(const std::vector<std::string>& options, const std::string& script) {
    std::vector<std::string> words = {FTRUN, "--standalone"};
    words.insert(words.end(), options.begin(), options.end());
    if (!script.empty()) words.insert(words.end(), {"sh", "-c", script});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      // Files rather than pipes: nothing that a rank leaves behind can hold up this test.
      if (freopen((folder_ / "out").c_str(), "w", stdout) == nullptr) _exit(99);
      if (freopen((folder_ / "err").c_str(), "w", stderr) == nullptr) _exit(99);
      execv(argv[0], argv.data());
      _exit(99);
    }
    return pid;
  }
  Result Run(const std::vector<std::string>& options, const std::string& script) {
    const auto start = steady_clock::now();
    Result result;
    waitpid(Start(options, script), &result.status, 0);
    result.time = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
    result.out = Read("out");
    result.err = Read("err");
    return result;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  // Waits until the ranks have written their process ids to files in the folder, and returns these.
  std::vector<pid_t> PidsOf(int count) const {
    std::vector<pid_t> pids;
    for (int i = 0; i < count; ++i) {
      pid_t pid = 0;
      while (!(std::ifstream(folder_ / ("pid" + std::to_string(i))) >> pid))
        std::this_thread::sleep_for(milliseconds(5));
      pids.push_back(pid);
    }
    return pids;
  }
  static bool EndsSoon(pid_t pid) {
    for (int i = 0; i < 2000 && kill(pid, 0) == 0; ++i) std::this_thread::sleep_for(milliseconds(10));
    return kill(pid, 0) != 0;
  }
  std::string PidScript() const {
    return "echo $$ > " + (folder_ / "tmp").string() + "$RANK; mv " + (folder_ / "tmp").string() + "$RANK " +
           (folder_ / "pid").string() + "$RANK; ";
  }

  const std::filesystem::path folder_;
};

TEST_F(FtrunTest, PrefixesAndLogs) {
  const std::string logs = (folder_ / "logs").string();
  const Result result = Run({"--nproc-per-node=2", "--log-dir=" + logs}, "echo hello; echo trouble >&2");
  EXPECT_EQ(result.status, 0);
  for (const char* line : {"[rank 0] hello\n", "[rank 1] hello\n"})
    EXPECT_NE(result.out.find(line), std::string::npos);
  EXPECT_NE(result.err.find("[rank 1] trouble\n"), std::string::npos);
  EXPECT_NE(Read("logs/rank_1.log").find("hello\n"), std::string::npos);
  EXPECT_EQ(Run({"--nproc-per-node=1"}, "echo alone").out, "alone\n");
}

TEST_F(FtrunTest, TheFirstFailureEndsAllAndGivesItsStatus) {
  const Result result = Run({"--nproc-per-node=3"}, "[ $RANK = 1 ] && exit 65; sleep 0.1; exit 75");
  EXPECT_EQ(WEXITSTATUS(result.status), 65);
  EXPECT_EQ(result.err.find("ftrun: rank 1 (pid "), 0u) << result.err;
  EXPECT_NE(result.err.find("exited with status 65"), std::string::npos);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  EXPECT_LT(result.time, milliseconds(1500));
}

TEST_F(FtrunTest, ARankThatDoesNotNoticeIsEnded) {
  const Result result =
      Run({"--nproc-per-node=2"}, "[ $RANK = 1 ] && kill -9 $$; sleep 60; echo not reached");
  EXPECT_EQ(WEXITSTATUS(result.status), 137);
  EXPECT_NE(result.err.find("rank 1"), std::string::npos);
  EXPECT_NE(result.err.find("signal 9"), std::string::npos);
  EXPECT_GE(result.time, milliseconds(1900));
  EXPECT_LT(result.time, milliseconds(4000));
  EXPECT_EQ(result.out, "");
}

TEST_F(FtrunTest, RestartsAll) {
  const Result result = Run({"--nproc-per-node=2", "--max-restarts=2"},
                            "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && echo done || exit 3");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("[rank 0] done\n"), std::string::npos);
  EXPECT_NE(result.out.find("[rank 1] done\n"), std::string::npos);
}

TEST_F(FtrunTest, AProgramThatCannotBeStartedIsOneClearLine) {
  const Result result = Run({"--nproc-per-node=2", "./no-such-program"}, "");
  EXPECT_EQ(WEXITSTATUS(result.status), 74);
  EXPECT_EQ(result.err,
            "ftrun: cannot run './no-such-program': No such file or directory; check the path, or that it is "
            "in PATH\n");
}

TEST_F(FtrunTest, PassesSignalsOnAndDiesOfThem) {
  const pid_t pid = Start({"--nproc-per-node=2"},
                          "trap 'echo caught; exit 0' INT; " + PidScript() + "while :; do sleep 0.02; done");
  const auto ranks = PidsOf(2);
  kill(pid, SIGINT);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_NE(Read("out").find("[rank 0] caught"), std::string::npos) << Read("err");
  EXPECT_NE(Read("out").find("[rank 1] caught"), std::string::npos);
  for (const pid_t rank : ranks) EXPECT_TRUE(EndsSoon(rank));
}

// As nohup does of SIGHUP, and a script of SIGINT for its background jobs.
TEST_F(FtrunTest, LeavesSignalsAloneThatAreIgnored) {
  for (const int number : {SIGHUP, SIGINT}) {
    std::filesystem::remove(folder_ / "pid0");
    std::filesystem::remove(folder_ / "pid1");
    signal(number, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);  // what it needs itself it takes nevertheless
    const pid_t pid =
        Start({"--nproc-per-node=2", "--grace=0.2"},
              PidScript() + "while [ ! -e " + (folder_ / "go").string() + " ]; do sleep 0.02; done; echo on");
    signal(number, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    PidsOf(2);
    kill(pid, number);
    std::this_thread::sleep_for(milliseconds(500));  // longer than the grace
    std::ofstream(folder_ / "go").put('\n');
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << strsignal(number) << Read("err");
    for (const char* line : {"[rank 0] on\n", "[rank 1] on\n"})
      EXPECT_NE(Read("out").find(line), std::string::npos);
    std::filesystem::remove(folder_ / "go");
  }
}

// Waits for words of all ranks in ftrun's output.
void AwaitText(const std::function<std::string()>& read, const std::vector<std::string>& words) {
  for (int i = 0; i < 1000; ++i) {
    const std::string text = read();
    if (std::all_of(words.begin(), words.end(),
                    [&](const std::string& word) { return text.find(word) != std::string::npos; }))
      return;
    std::this_thread::sleep_for(milliseconds(10));
  }
  ADD_FAILURE() << "ranks did not say " << words[0];
}

// A stand-in for ftexec with a checkpoint folder.
constexpr char kSaves[] = "trap 'echo saved' USR2; trap 'sleep 0.$((RANK * 3)); exit 143' USR1 TERM; ";

TEST_F(FtrunTest, PassesWishesOnAndGoesOn) {
  const pid_t pid = Start({"--nproc-per-node=2"}, kSaves + PidScript() + "while :; do sleep 0.02; done");
  PidsOf(2);
  for (int i = 0; i < 2; ++i) {
    kill(pid, SIGUSR2);
    AwaitText([&] { return Read("out"); }, {"[rank 0] saved", "[rank 1] saved"});
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, WNOHANG), 0);
  kill(pid, SIGUSR1);
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 143) << status;
  EXPECT_EQ(Read("err"), "ftrun: all ranks have saved and ended, as a signal asked\n");
}

// Nothing is started again, and the slower rank is given its time.
TEST_F(FtrunTest, RanksThatSavedAndEndedAreNoFailure) {
  for (const bool told : {true, false}) {
    std::filesystem::remove(folder_ / "pid0");
    std::filesystem::remove(folder_ / "pid1");
    const pid_t pid = Start({"--nproc-per-node=2", "--max-restarts=3"},
                            "trap 'sleep $((RANK * 3)); echo written; exit 143' USR1 TERM; " + PidScript() +
                                "while :; do sleep 0.02; done");
    const auto ranks = PidsOf(2);
    if (told) kill(pid, SIGTERM);
    for (const pid_t rank : ranks) {
      if (!told) kill(rank, SIGUSR1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 143) << status;
    EXPECT_NE(Read("out").find("[rank 1] written"), std::string::npos) << Read("err");
    EXPECT_EQ(Read("err").find("restart"), std::string::npos) << Read("err");
  }
}

TEST_F(FtrunTest, AProgramThatKnowsNoWishesDiesOfThem) {
  const pid_t pid = Start({"--nproc-per-node=2"}, PidScript() + "while :; do sleep 0.02; done");
  PidsOf(2);
  kill(pid, SIGUSR1);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGUSR1) << status;
}

TEST_F(FtrunTest, TheGraceTimeIsWaitedForAndNoLonger) {
  const pid_t pid = Start({"--nproc-per-node=2", "--grace=1.5"},
                          "trap '' TERM; " + PidScript() + "while :; do sleep 0.02; done");
  const auto ranks = PidsOf(2);
  const auto start = steady_clock::now();
  kill(pid, SIGTERM);
  int status = 0;
  waitpid(pid, &status, 0);
  const auto time = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_GE(time, milliseconds(1450));
  EXPECT_LT(time, milliseconds(6000));
  for (const pid_t rank : ranks) EXPECT_TRUE(EndsSoon(rank));
}

TEST_F(FtrunTest, NoRankOutlivesAKilledFtrunNorWhatItStarted) {
  // The sleep is the rank's child: only the guardian reaches it.
  const pid_t pid = Start({"--nproc-per-node=2"}, "sleep 60 & echo $! > " + (folder_ / "child").string() +
                                                      "$RANK; " + PidScript() + "wait");
  std::vector<pid_t> processes = PidsOf(2);
  for (const char* name : {"child0", "child1"}) processes.push_back(std::stoi(Read(name)));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  for (const pid_t process : processes) EXPECT_TRUE(EndsSoon(process)) << process;
}

}  // namespace
}  // namespace ft::run
