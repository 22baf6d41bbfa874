#include "tools/ftc/report/run_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"
#include "tools/ftc/report/plan_columns.h"
#include "tools/ftc/report/run_metrics.h"

namespace ftc {
namespace {

using Json = nlohmann::json;

// Of one stream of one rank.
struct Track {
  ft::proto::Stream stream = ft::proto::COMPUTE;
  std::vector<int> programs;  // of a step, those in which the stream has something to do
  int64_t runs = 0;           // of programs, so far
  int64_t last = -1;
  bool last_waited = false;

  int64_t step() const { return (runs - 1) / static_cast<int64_t>(programs.size()); }
  int program() const { return programs[static_cast<size_t>((runs - 1)) % programs.size()]; }
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Steps of a rank in which the first is not like the others.
double SteadyMedian(const std::map<int64_t, double>& by_step, int64_t steps) {
  std::vector<double> values;
  for (const auto& [step, seconds] : by_step) {
    if (step > 0 || steps == 1) values.push_back(seconds);
  }
  return values.empty() ? 0 : MedianOf(std::move(values));
}

class Reader {
 public:
  Reader(const std::string& path, const Explained& explained) : path_(path), explained_(explained) {
    trace_.file = FileName(path);
  }

  absl::StatusOr<RunTrace> Read(const Json& events) {
    for (const Json& event : events) {
      if (!event.is_object()) return NoTrace();
      if (event.value("ph", Json()) == "M" && event.value("name", Json()) == "thread_name")
        FT_RETURN_IF_ERROR(AddTrack(event));
    }
    for (const Json& event : events) {
      if (event.value("ph", Json()) == "X") FT_RETURN_IF_ERROR(AddEvent(event));
    }
    if (tracks_.empty() || times_.empty()) return NoTrace();
    Summarise();
    return std::move(trace_);
  }

  absl::Status NoTrace() const {
    return absl::InvalidArgumentError(
        fmt::format("{} is no trace of ftexec (--trace=trace.json)", ft::Quote(path_)));
  }

 private:
  using Place = std::pair<int64_t, int64_t>;  // rank, stream's number in the trace

  absl::Status OfAnother(const std::string& what) const {
    return absl::InvalidArgumentError(fmt::format("{}: trace of another plan: {}", ft::OneLine(path_), what));
  }

  std::optional<Place> PlaceOf(const Json& event) const {
    const auto rank = event.find("pid"), stream = event.find("tid");
    if (rank == event.end() || stream == event.end() || !rank->is_number_integer() ||
        !stream->is_number_integer())
      return std::nullopt;
    return Place(rank->get<int64_t>(), stream->get<int64_t>());
  }

  absl::Status AddTrack(const Json& event) {
    const std::optional<Place> place = PlaceOf(event);
    const auto arguments = event.find("args");
    if (!place || arguments == event.end() || !arguments->is_object() || !arguments->contains("name"))
      return NoTrace();
    Track track;
    const Json& name = (*arguments)["name"];
    int stream = 0;
    while (stream < ft::proto::Stream_ARRAYSIZE && name != StreamKey(static_cast<ft::proto::Stream>(stream)))
      ++stream;
    if (stream == ft::proto::Stream_ARRAYSIZE) return absl::OkStatus();  // not of the schedule
    track.stream = static_cast<ft::proto::Stream>(stream);
    const ft::proto::Plan& plan = explained_.plan;
    for (int p = 0; p < plan.programs_size(); ++p) {
      const auto& all = plan.programs(p).instructions();
      const bool used = std::any_of(all.begin(), all.end(), [&](const ft::proto::Instruction& one) {
        return one.stream() == track.stream && one.opcode() != ft::proto::RELEASE;
      });
      if (used) track.programs.insert(track.programs.end(), ft::RunsInStep(plan, plan.programs(p)), p);
    }
    tracks_[*place] = track;
    return absl::OkStatus();
  }

  absl::Status AddEvent(const Json& event) {
    const std::optional<Place> place = PlaceOf(event);
    const auto begin = event.find("ts"), duration = event.find("dur"), name = event.find("name");
    if (!place || begin == event.end() || duration == event.end() || name == event.end() ||
        !begin->is_number() || !duration->is_number() || !name->is_string())
      return NoTrace();
    const auto track = tracks_.find(*place);
    if (track == tracks_.end()) return absl::OkStatus();
    const bool wait = event.value("cat", Json()) == "wait";
    const auto arguments = event.find("args");
    const double seconds = duration->get<double>() / 1e6;
    if (arguments == event.end() || !arguments->is_object() || !arguments->contains("sequence") ||
        !(*arguments)["sequence"].is_number_integer())
      return absl::OkStatus();  // copies of inputs, waits for all of a stream
    const int64_t sequence = (*arguments)["sequence"].get<int64_t>();
    if (track->second.programs.empty())
      return OfAnother(fmt::format("a step of this one has nothing on {}", StreamKey(track->second.stream)));
    Advance(track->second, sequence, wait);
    FT_RETURN_IF_ERROR(IsOfPlan(track->second, sequence, wait, name->get<std::string>()));
    Record(place->first, track->second, sequence, wait, begin->get<double>() / 1e6, seconds);
    return absl::OkStatus();
  }

  // A program begins anew where the numbers of instructions go back.
  static void Advance(Track& track, int64_t sequence, bool wait) {
    if (track.runs == 0 || sequence < track.last || (sequence == track.last && !track.last_waited))
      ++track.runs;
    track.last = sequence;
    track.last_waited = wait;
  }

  absl::Status IsOfPlan(const Track& track, int64_t sequence, bool wait, const std::string& name) const {
    const ft::proto::Program& program = explained_.plan.programs(track.program());
    if (sequence < 0 || sequence >= program.instructions_size())
      return OfAnother(fmt::format("{} has {} instructions, the trace has one with number {}", program.name(),
                                   program.instructions_size(), sequence));
    const ft::proto::Instruction& instruction = program.instructions(static_cast<int>(sequence));
    const std::string title = ft::InstructionTitle(explained_.plan, instruction);
    if (instruction.stream() != track.stream || (!wait && title != name))
      return OfAnother(fmt::format("instruction {} of {} is {}, the trace has {} on {}", sequence,
                                   program.name(), ft::Quote(title), ft::Quote(name),
                                   StreamKey(track.stream)));
    return absl::OkStatus();
  }

  void Record(int64_t rank, const Track& track, int64_t sequence, bool wait, double begin, double seconds) {
    steps_ = std::max(steps_, track.step() + 1);
    const int program = track.program(), instruction = static_cast<int>(sequence);
    if (!wait) {
      // A program may run several times in a step: the mean of them.
      const auto runs =
          static_cast<double>(ft::RunsInStep(explained_.plan, explained_.plan.programs(program)));
      times_[{program, instruction}][rank][track.step()] += seconds / runs;
    } else if (track.stream == ft::proto::COMPUTE) {
      waited_[rank][track.step()] += seconds;
    }
    if (rank != tracks_.begin()->first.first) return;
    // What an earlier run of the program in this step did on this stream is forgotten.
    auto& [run, events] = events_[track.step()][{program, track.stream}];
    if (std::exchange(run, track.runs) != track.runs) events.clear();
    events.push_back({.program = program,
                      .instruction = instruction,
                      .wait = wait,
                      .begin = begin,
                      .end = begin + seconds});
  }

  void LastRuns() {
    std::map<int, double> began;  // by program
    for (const auto& [place, run] : events_[steps_ > 1 ? 1 : 0]) {
      double& first = began.try_emplace(place.first, INFINITY).first->second;
      for (const RunTrace::Event& event : run.second) first = std::min(first, event.begin);
      trace_.events.insert(trace_.events.end(), run.second.begin(), run.second.end());
    }
    for (RunTrace::Event& event : trace_.events) {
      event.begin -= began[event.program];
      event.end -= began[event.program];
    }
  }

  void Summarise() {
    for (const auto& [place, track] : tracks_)
      trace_.ranks += tracks_.lower_bound({place.first, INT64_MIN})->first == place ? 1 : 0;
    trace_.steps = steps_;
    for (const auto& [key, by_rank] : times_) {
      std::vector<double> medians;
      for (const auto& [rank, by_step] : by_rank) medians.push_back(SteadyMedian(by_step, steps_));
      trace_.measured.push_back({.program = key.first,
                                 .instruction = key.second,
                                 .median = MedianOf(medians),
                                 .slowest = *std::max_element(medians.begin(), medians.end())});
    }
    std::vector<double> waits;
    for (const auto& [rank, by_step] : waited_) waits.push_back(SteadyMedian(by_step, steps_));
    if (!waits.empty()) {
      trace_.waited_median = MedianOf(waits);
      trace_.waited_slowest = *std::max_element(waits.begin(), waits.end());
    }
    LastRuns();
    Classes();
  }

  void Classes() {
    std::map<std::pair<std::string, std::string>, RunTrace::Class> classes;
    const ft::proto::Plan& plan = explained_.plan;
    int simulated = -1;
    ft::SimulatedProgram run;
    for (const RunTrace::Measured& one : trace_.measured) {
      if (std::exchange(simulated, one.program) != one.program)
        run = ft::SimulateProgram(plan, explained_.bound, one.program, explained_.target);
      const ft::proto::Instruction& instruction = plan.programs(one.program).instructions(one.instruction);
      // "all_gather" of any unit
      const std::string title = instruction.opcode() == ft::proto::KERNEL
                                    ? instruction.kernel()
                                    : absl::AsciiStrToLower(ft::proto::Opcode_Name(instruction.opcode()));
      const std::string stream = StreamKey(instruction.stream());
      RunTrace::Class& of =
          classes.try_emplace({stream, title}, RunTrace::Class{.title = title, .stream = stream})
              .first->second;
      const uint64_t runs = ft::RunsInStep(plan, plan.programs(one.program));
      const ft::SimulatedInstruction& times = run.instructions[static_cast<size_t>(one.instruction)];
      of.count += runs;
      of.predicted += static_cast<double>(runs) * (times.end - times.begin);
      of.measured += static_cast<double>(runs) * one.median;
    }
    for (auto& [key, one] : classes) trace_.classes.push_back(std::move(one));
    const auto difference = [](const RunTrace::Class& one) { return std::abs(one.measured - one.predicted); };
    std::stable_sort(trace_.classes.begin(), trace_.classes.end(),
                     [&](const auto& a, const auto& b) { return difference(a) > difference(b); });
  }

  const std::string& path_;
  const Explained& explained_;
  std::map<Place, Track> tracks_;
  int64_t steps_ = 0;
  // By program and instruction, rank, step.
  std::map<std::pair<int, int>, std::map<int64_t, std::map<int64_t, double>>> times_;
  std::map<int64_t, std::map<int64_t, double>> waited_;  // by rank, step
  // Of the first rank, by step, program and stream: which run of the stream, and what it did.
  std::map<int64_t, std::map<std::pair<int, int>, std::pair<int64_t, std::vector<RunTrace::Event>>>> events_;
  RunTrace trace_;
};

}  // namespace

absl::StatusOr<RunTrace> ReadRunTrace(const std::string& path, const Explained& explained) {
  FT_ASSIGN_OR_RETURN(const std::string text, ft::ReadText(path, "trace", kMaxRunBytes));
  Reader reader(path, explained);
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return reader.NoTrace();
  const auto events = document.find("traceEvents");
  if (events == document.end() || !events->is_array()) return reader.NoTrace();
  return reader.Read(*events);
}

}  // namespace ftc
