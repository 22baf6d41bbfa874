#include "tools/ftc/against/trace_file.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace ftc {
namespace {

using nlohmann::json;

constexpr std::string_view kHead = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", kFoot = "]}";
constexpr double kMicrosecond = 1e-6;

class TraceReader {
 public:
  explicit TraceReader(const std::string& path) : path_(path) {}

  absl::StatusOr<MeasuredTrace> Read(std::string_view text) {
    for (line_ = 1; !text.empty(); ++line_) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
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
    const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string() || !Is(event, "pid") ||
        !event.contains("name") || !event["name"].is_string())
      return Refuse("an event is no object with ph, pid and name");
    const std::string kind = event["ph"];
    const json arguments = event.value("args", json::object());
    if (!arguments.is_object()) return Refuse("args is no object");
    if (kind == "M") return ReadMetadata(event, arguments);
    return kind == "X" ? ReadWork(event, arguments) : absl::OkStatus();
  }

  static bool Is(const json& object, const char* key) {
    return object.contains(key) && object[key].is_number();
  }

  static std::string TextOf(const json& object, const char* key) {
    return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
  }

  absl::Status ReadMetadata(const json& event, const json& arguments) {
    const int rank = event["pid"];
    if (event["name"] == "thread_name" && Is(event, "tid") && TextOf(arguments, "name") == "compute")
      compute_[rank] = event["tid"];
    if (event["name"] != ft::kTraceRunEvent) return absl::OkStatus();
    for (const char* key : {"replica", "shard"})
      if (!Is(arguments, key)) return Refuse(fmt::format("its run does not say {}", key));
    ft::TraceRun run{TextOf(arguments, "plan"), TextOf(arguments, "device"), arguments["replica"],
                     arguments["shard"], Is(arguments, "step_ms") ? arguments["step_ms"].get<double>() : 0};
    if (trace_.ranks > 0 && (run.plan != trace_.run.plan || run.device != trace_.run.device ||
                             run.replica != trace_.run.replica || run.shard != trace_.run.shard))
      return Refuse(fmt::format("rank {} has another plan, device or mesh than the one before", rank));
    if (trace_.ranks++ == 0) trace_.run = std::move(run);
    return absl::OkStatus();
  }

  absl::Status ReadWork(const json& event, const json& arguments) {
    if (!Is(arguments, "sequence") || !Is(arguments, "step")) return absl::OkStatus();
    if (!Is(event, "ts") || !Is(event, "dur") || !Is(event, "tid"))
      return Refuse("an event has no ts, dur and tid");
    MeasuredEvent& to = trace_.events.emplace_back();
    to.rank = event["pid"];
    to.is_wait = TextOf(event, "cat") == "wait";
    const auto compute = compute_.find(to.rank);
    to.computes = compute != compute_.end() && compute->second == event["tid"].get<int64_t>();
    to.program = TextOf(arguments, "program");
    to.instruction = arguments["sequence"];
    to.step = arguments["step"];
    to.micro_step = Is(arguments, "micro_step") ? arguments["micro_step"].get<int64_t>() : 0;
    to.begin = event["ts"].get<double>() * kMicrosecond;
    to.seconds = event["dur"].get<double>() * kMicrosecond;
    return absl::OkStatus();
  }

  absl::StatusOr<MeasuredTrace> Finish() {
    if (trace_.ranks == 0) return Refuse("it does not say of which plan it is; trace the run again");
    if (trace_.events.empty()) return Refuse("it has no step");
    return std::move(trace_);
  }

  const std::string path_;
  int64_t line_ = 0;
  std::map<int, int64_t> compute_;  // which track, by rank
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
