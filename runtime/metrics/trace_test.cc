#include "runtime/metrics/trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

double WallMicroseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

class TraceTest : public testing::Test {
 protected:
  // The events with this "ph".
  static std::vector<nlohmann::json> Events(const std::string& path, const std::string& phase) {
    const nlohmann::json trace = nlohmann::json::parse(TempFolder::Read(path));
    std::vector<nlohmann::json> events;
    for (const nlohmann::json& event : trace["traceEvents"]) {
      if (event["ph"] == phase) events.push_back(event);
    }
    return events;
  }

  TempFolder folder_;
  std::string path_ = folder_.Path("trace.json");
};

TEST_F(TraceTest, ALabelIsMetadata) {
  for (const bool labelled : {false, true}) {
    TraceRecorder trace(1);
    if (labelled) trace.SetLabel("emulated link of 10 Gb/s");
    ASSERT_TRUE(trace.Write(path_).ok());
    int labels = 0;
    for (const nlohmann::json& event : Events(path_, "M")) {
      if (event["name"] != "process_labels") continue;
      ++labels;
      EXPECT_EQ(event["pid"], 1);
      EXPECT_EQ(event["args"]["labels"], "emulated link of 10 Gb/s");
    }
    EXPECT_EQ(labels, labelled ? 1 : 0);
  }
}

TEST_F(TraceTest, WritesTracksAndEvents) {
  TraceRecorder trace(3);
  const int compute = trace.AddStream("compute", 10), gather = trace.AddStream("a \"b\"\\\n", 10);
  const int64_t now = TraceRecorder::NowNs();
  trace.Record(compute, "matmul", "kernel", now, now + 1'234'567);
  trace.Record(gather, "all_gather", "collective", now + 5, now + 6, 4096, 17);
  trace.Record(gather, "wait", "collective", now + 7, now + 8, -1, 18, {"h.\"0\"", "f32[4] -> f32[8]"});
  EXPECT_EQ(trace.num_events(), 3u);
  ASSERT_TRUE(trace.Write(path_).ok());

  const auto events = Events(path_, "X");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["pid"], 3);
  EXPECT_EQ(events[0]["tid"], compute);
  EXPECT_EQ(events[0]["name"], "matmul");
  EXPECT_EQ(events[0]["cat"], "kernel");
  EXPECT_EQ(events[0]["dur"], 1234.567);
  EXPECT_TRUE(events[0]["args"].empty());
  EXPECT_EQ(events[1]["tid"], gather);
  EXPECT_EQ(events[1]["dur"], 0.001);
  EXPECT_EQ(events[1]["args"], nlohmann::json::parse(R"({"bytes":4096,"sequence":17})"));
  EXPECT_EQ(events[2]["args"],
            nlohmann::json::parse(R"({"sequence":18,"layer":"h.\"0\"","shapes":"f32[4] -> f32[8]"})"));

  std::string names;
  for (const auto& event : Events(path_, "M")) {
    if (event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"], "rank 3");
    }
    if (event["name"] == "thread_name") names += event["args"]["name"].get<std::string>() + ";";
  }
  EXPECT_EQ(names, "compute;a \"b\"\\\n;");
}

TEST_F(TraceTest, CountersAreValuesFromATimeOn) {
  TraceRecorder trace(2);
  trace.ReserveValues(3);
  const std::vector<std::pair<std::string_view, uint64_t>> parts = {{"parameters", 5},
                                                                    {"workspace", uint64_t{7} << 40}};
  trace.CountParts("arena, \"bytes\"", parts);
  const int64_t now = TraceRecorder::NowNs();
  trace.Count("mfu", now, 1.0 / 3);
  trace.Count("mfu", now + 1000, NAN);  // no JSON has it
  trace.Count("mfu", now + 2000, 0.5);
  trace.Count("exposed_ms", now, 2);
  trace.Count("exposed_ms", now, 3);
  EXPECT_EQ(trace.dropped(), 1u);
  ASSERT_TRUE(trace.Write(path_).ok());
  const auto events = Events(path_, "C");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["name"], "arena, \"bytes\"");
  EXPECT_EQ(events[0]["args"], nlohmann::json::parse(R"({"parameters":5,"workspace":7696581394432})"));
  EXPECT_EQ(events[1]["name"], "mfu");
  EXPECT_EQ(events[1]["pid"], 2);
  EXPECT_EQ(events[1]["args"]["value"], 1.0 / 3);
  EXPECT_EQ(events[2]["args"]["value"], 0.5);
  EXPECT_NEAR(events[2]["ts"].get<double>() - events[1]["ts"].get<double>(), 2.0, 1e-3);
  EXPECT_EQ(events[3]["name"], "exposed_ms");
}

TEST_F(TraceTest, TimesAreWallClockMicroseconds) {
  TraceRecorder trace(0);
  trace.AddStream("compute", 1);
  const double before = WallMicroseconds();
  const int64_t now = TraceRecorder::NowNs();
  trace.Record(0, "op", "kernel", now,
               now - 1);  // a clock that stepped back must not make the file unreadable
  const double after = WallMicroseconds();
  ASSERT_TRUE(trace.Write(path_).ok());
  const double ts = Events(path_, "X").at(0)["ts"];
  EXPECT_GE(ts, before - 100);  // the two clocks are read one after the other
  EXPECT_LE(ts, after + 100);
  EXPECT_EQ(Events(path_, "X").at(0)["dur"], 0);
}

TEST_F(TraceTest, DropsAndCountsWhatFindsNoRoom) {
  TraceRecorder trace(0);
  trace.AddStream("compute", 2);
  for (int i = 0; i < 5; ++i) trace.Record(0, "op", "kernel", i, i + 1);
  EXPECT_EQ(trace.num_events(), 2u);
  EXPECT_EQ(trace.dropped(), 3u);
  ASSERT_TRUE(trace.Write(path_).ok());
  EXPECT_EQ(Events(path_, "X").size(), 2u);
  bool said = false;
  for (const auto& event : Events(path_, "M"))
    said |= event["name"] == "dropped_events" && event["args"]["count"] == 3;
  EXPECT_TRUE(said);
}

TEST_F(TraceTest, StreamsRecordAtOnce) {
  TraceRecorder trace(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) trace.AddStream("s" + std::to_string(i), 1000);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&trace, i] {
      for (int k = 0; k < 1000; ++k) trace.Record(i, "op", "kernel", k, k + 1, i, k);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.num_events(), 4000u);
  EXPECT_EQ(trace.dropped(), 0u);
}

TEST_F(TraceTest, MergesParts) {
  std::vector<std::string> parts;
  for (int rank = 0; rank < 3; ++rank) {
    TraceRecorder trace(rank);
    trace.AddStream("compute", 5);
    for (int i = 0; i <= rank; ++i) trace.Record(0, "op", "kernel", i, i + 1);
    parts.push_back(TracePartPath(path_, rank));
    ASSERT_TRUE(trace.Write(parts.back()).ok());
  }
  ASSERT_TRUE(MergeTraces(parts, path_).ok());
  const auto events = Events(path_, "X");
  std::vector<int> pids;
  for (const auto& event : events) pids.push_back(event["pid"]);
  EXPECT_EQ(pids, (std::vector<int>{0, 1, 1, 2, 2, 2}));
  // A merged trace is a trace: it may be merged again, also onto itself.
  ASSERT_TRUE(MergeTraces({{path_, parts[0]}}, path_).ok());
  EXPECT_EQ(Events(path_, "X").size(), 7u);
}

TEST_F(TraceTest, MergeRefusesWhatIsNotATrace) {
  EXPECT_EQ(MergeTraces({{folder_.Path("none")}}, path_).code(), absl::StatusCode::kNotFound);
  const absl::Status status = MergeTraces({{folder_.Write("x", "{\"traceEvents\":[]}")}}, path_);
  EXPECT_EQ(ExitStatus(status), kExitBadInput);
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST(TracePartPathTest, PutsTheRankBeforeTheExtension) {
  EXPECT_EQ(TracePartPath("out/trace.json", 2), "out/trace.rank2.json");
  EXPECT_EQ(TracePartPath("trace", 0), "trace.rank0");
  EXPECT_EQ(TracePartPath("a.b/trace", 11), "a.b/trace.rank11");
  EXPECT_EQ(TracePartPath("a/.hidden", 1), "a/.hidden.rank1");
}

}  // namespace
}  // namespace ft
