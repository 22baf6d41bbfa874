#include "tools/ftc/against/trace_file.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ftc {
namespace {

using nlohmann::json;

// Lines.
constexpr std::string_view kHead = ft::kTraceHead.substr(0, ft::kTraceHead.size() - 1);
constexpr std::string_view kFoot = ft::kTraceFoot.substr(1, ft::kTraceFoot.size() - 2);
// 140 years from 1970: the nanoseconds of two such times together fit 64 bits.
constexpr double kMicrosecond = 1e-6, kMostMicroseconds = 4.5e15;
constexpr int kMaxDepth = 8;
constexpr size_t kMostLink = 120;  // characters
constexpr std::string_view kDevices[] = {"cpu", "cuda", "null"};
constexpr int64_t kMostRanks = 1 << 24, kMostInstructions = int64_t{1} << 31, kMostSteps = int64_t{1} << 40,
                  kMostMicroSteps = 1 << 20;

class TraceReader {
 public:
  explicit TraceReader(const std::string& path) : path_(path) {}

  absl::StatusOr<MeasuredTrace> Read(std::string_view text) {
    for (line_ = 1; !text.empty(); ++line_) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      cut_ = end == text.size();
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line_ == 1) {
        if (line != kHead) return Refuse("it does not begin like one");
        continue;
      }
      if (line == kFoot) return Finish();
      if (line.ends_with(',')) line.remove_suffix(1);
      FT_RETURN_IF_ERROR(ReadEvent(line));
    }
    return Refuse("it ends in the middle");
  }

 private:
  absl::Status Refuse(std::string_view why) const {
    return absl::InvalidArgumentError(
        fmt::format("'{}':{}: this is no trace of ftexec: {}", path_, line_, why));
  }

  absl::Status ReadEvent(std::string_view line) {
    const auto is_shallow = [](int depth, json::parse_event_t, json&) { return depth <= kMaxDepth; };
    const json event = json::parse(line, is_shallow, /*allow_exceptions=*/false);
    if (event.is_discarded() && cut_) return Refuse("it ends in the middle");
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string() ||
        !Whole(event, "pid", kMostRanks) || !event.contains("name") || !event["name"].is_string())
      return Refuse("an event is no object with ph, pid and name");
    const std::string kind = event["ph"];
    static const json kNone = json::object();
    const json& arguments = event.contains("args") ? event["args"] : kNone;
    if (!arguments.is_object()) return Refuse("args is no object");
    if (kind == "M") return ReadMetadata(event, arguments);
    return kind == "X" ? ReadWork(event, arguments) : absl::OkStatus();
  }

  // From 0 to `most`, both included.
  static bool Whole(const json& object, const char* key, int64_t most) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() && *found >= 0 && *found <= most;
  }

  static bool Time(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() && *found >= 0 && *found <= kMostMicroseconds;
  }

  static std::string TextOf(const json& object, const char* key) {
    return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
  }

  absl::Status ReadMetadata(const json& event, const json& arguments) {
    const int rank = event["pid"];
    if (event["name"] == "thread_name" && Whole(event, "tid", kMostRanks) &&
        TextOf(arguments, "name") == "compute")
      compute_[rank] = event["tid"];
    if (event["name"] != ft::kTraceRunEvent) return absl::OkStatus();
    for (const char* key : {"replica", "shard"})
      if (!Whole(arguments, key, kMostRanks) || arguments[key] == 0)
        return Refuse(fmt::format("its run does not say {}", key));
    ft::TraceRun run{.plan = TextOf(arguments, "plan"),
                     .device = TextOf(arguments, "device"),
                     .replica = arguments["replica"],
                     .shard = arguments["shard"],
                     .step_ms = Time(arguments, "step_ms") ? arguments["step_ms"].get<double>() : 0,
                     .target = TextOf(arguments, "target"),
                     .link = ft::OneLine(TextOf(arguments, "link"), kMostLink)};
    if (int64_t{run.replica} * run.shard > kMostRanks) return Refuse("its mesh has too many ranks");
    if (trace_.ranks > 0 && (run.plan != trace_.run.plan || run.device != trace_.run.device ||
                             run.replica != trace_.run.replica || run.shard != trace_.run.shard ||
                             run.target != trace_.run.target || run.link != trace_.run.link))
      return Refuse(fmt::format("rank {} has another plan, device, mesh or link than the one before", rank));
    if (std::find(std::begin(kDevices), std::end(kDevices), run.device) == std::end(kDevices))
      return Refuse(fmt::format("its run is on '{}', neither cpu nor cuda nor null", run.device));
    if (rank >= run.replica * run.shard)
      return Refuse(fmt::format("rank {} is none of its mesh of {}", rank, run.replica * run.shard));
    if (!announced_.insert(rank).second) return Refuse(fmt::format("rank {} begins twice", rank));
    if (trace_.ranks++ == 0) trace_.run = std::move(run);
    return absl::OkStatus();
  }

  absl::Status ReadWork(const json& event, const json& arguments) {
    if (!arguments.contains("sequence") || !arguments.contains("step")) return absl::OkStatus();
    if (!Time(event, "ts") || !Time(event, "dur") || !Whole(event, "tid", kMostRanks))
      return Refuse("an event has no ts, dur and tid that can be");
    if (!Whole(arguments, "sequence", kMostInstructions) || !Whole(arguments, "step", kMostSteps) ||
        !Whole(arguments, "micro_step", kMostMicroSteps))
      return Refuse("an event has no sequence, step and micro_step that can be");
    MeasuredEvent& to = trace_.events.emplace_back();
    to.rank = event["pid"];
    to.is_wait = TextOf(event, "cat") == "wait";
    const auto compute = compute_.find(to.rank);
    to.computes = compute != compute_.end() && compute->second == event["tid"].get<int64_t>();
    to.program = TextOf(arguments, "program");
    to.instruction = arguments["sequence"];
    to.step = arguments["step"];
    to.micro_step = arguments["micro_step"];
    to.begin = event["ts"].get<double>() * kMicrosecond;
    to.seconds = event["dur"].get<double>() * kMicrosecond;
    return absl::OkStatus();
  }

  absl::StatusOr<MeasuredTrace> Finish() {
    if (trace_.ranks == 0) return Refuse("it does not say of which plan it is; trace the run again");
    if (trace_.events.empty()) return Refuse("it has no step");
    for (const MeasuredEvent& event : trace_.events)
      if (!announced_.contains(event.rank))
        return Refuse(fmt::format("rank {} has events, and does not say of which plan", event.rank));
    return std::move(trace_);
  }

  const std::string path_;
  int64_t line_ = 0;
  bool cut_ = false;                // the line is the last, and has no end
  std::map<int, int64_t> compute_;  // which track, by rank
  std::set<int> announced_;         // ranks that say of which run they are
  MeasuredTrace trace_;
};

}  // namespace

absl::StatusOr<MeasuredTrace> ReadTrace(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const ft::MappedFile file,
                      ft::MappedFile::Open(path, ft::MappedFile::Access::kSequential));
  const auto bytes = file.bytes();
  return TraceReader(path).Read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace ftc
