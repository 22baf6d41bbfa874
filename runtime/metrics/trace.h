// Traces of training steps for chrome://tracing and Perfetto.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/atomic_file.h"

namespace ft {

// What is known of an event beside its name: of the model's layer `layer`; `shapes` of what it reads and
// writes, such as "f32[4,64] f32[64,8] -> f32[4,8]"; `program` of the plan, and in which step and micro-step
// it ran. Empty and negative ones are left out.
struct TraceDetails {
  std::string_view layer = {}, shapes = {}, program = {};
  int64_t step = -1, micro_step = -1;
};

// A trace is the head, one event a line with commas between them, and the foot.
inline constexpr std::string_view kTraceHead = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
inline constexpr std::string_view kTraceFoot = "\n]}\n";

// Of what a trace is: an event of this name says it for each rank.
inline constexpr std::string_view kTraceRunEvent = "ft_run";
struct TraceRun {
  std::string plan;    // PlanHashText
  std::string device;  // "cpu", "cuda", "null"
  int replica = 1, shard = 1;
  double step_ms = 0;       // of a step that was not traced, the median; 0: not known
  std::string target = {};  // "null": the machine that was simulated; else empty
  std::string link = {};    // that collectives went over where one was emulated; else empty
};

// Records what each stream of one rank did, and when: a process in the trace is a rank, a thread (track) a
// stream. Streams are added first, with room for all their events; recording then allocates nothing and takes
// no lock. Each stream may be recorded to by one thread at a time, different streams at once. An event that
// finds no room is dropped and counted. Times are nanoseconds of NowNs(); they are written as wall-clock
// time, so the tracks of ranks on one host line up.
class TraceRecorder {
 public:
  explicit TraceRecorder(int rank);

  // A word on the process that viewers show beside its name.
  void SetLabel(std::string label) { label_ = std::move(label); }

  void SetRun(TraceRun run) { run_ = std::move(run); }

  // Returns the stream's number, 0, 1, ... in order. capacity: events, e.g. instructions of the stream x
  // traced steps.
  int AddStream(std::string name, size_t capacity);

  // The monotonic clock, nanoseconds.
  static int64_t NowNs();

  // All text must stay valid until the trace is written (it is the plan's, or the session's). `bytes` and
  // `sequence` (which instruction) become arguments of the event; negative: left out.
  void Record(int stream, std::string_view name, std::string_view category, int64_t start_ns, int64_t end_ns,
              int64_t bytes = -1, int64_t sequence = -1, const TraceDetails& details = {}) noexcept;

  // Room for values of counters, which viewers draw over time.
  void ReserveValues(size_t count) { values_.reserve(count); }

  // From `at_ns` on the counter `name`, which must stay valid, has this value. Dropped and counted where
  // there is no room; what is not finite is left out. One thread at a time.
  void Count(std::string_view name, int64_t at_ns, double value) noexcept;

  // A counter of several parts that have these values from now on.
  void CountParts(std::string name, absl::Span<const std::pair<std::string_view, uint64_t>> parts);

  size_t num_events() const;
  size_t dropped() const;  // events and values there was no room for

  // Writes the trace to `path` by write-then-rename. No thread may be recording. System errors: exit
  // status 74.
  absl::Status Write(const std::string& path) const;

 private:
  struct Event {
    std::string_view name, category;
    int64_t start_ns, end_ns, bytes, sequence;
    TraceDetails details;
  };
  struct Value {
    std::string_view name;
    int64_t at_ns;
    double value;
  };
  struct Parts {
    std::string name, arguments;  // "parameters":5,"workspace":7
    int64_t at_ns;
  };
  struct Stream {
    std::string name;
    std::unique_ptr<Event[]> events;
    size_t capacity = 0, size = 0, dropped = 0;
  };

  absl::Status WriteStream(size_t tid, AtomicFile* file, fmt::memory_buffer* text) const;
  void AddRun(fmt::memory_buffer* text) const;
  void AddCounters(fmt::memory_buffer* text) const;

  int rank_;
  std::string label_;       // empty: none
  TraceRun run_;            // without a plan: not said
  int64_t wall_offset_ns_;  // wall clock minus NowNs(), taken once
  std::vector<Stream> streams_;
  std::vector<Value> values_;
  std::vector<Parts> parts_;
  size_t dropped_values_ = 0;
};

// Where a rank writes its part: rank 2 of "out/trace.json" is "out/trace.rank2.json" (".rank2" goes before
// the last extension of the file name, or at its end when there is none).
std::string TracePartPath(std::string_view path, int rank);

// Joins the parts that ranks have written into one trace at `out` (which may also be one of the parts),
// events in the order of the parts. NotFound when a part is missing (exit status 74), InvalidArgument when
// one was not written by TraceRecorder.
absl::Status MergeTraces(absl::Span<const std::string> parts, const std::string& out);

}  // namespace ft
