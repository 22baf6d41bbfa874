// Reports by anybody: every field is of the type and in the bounds that it has to be, or the report is
// refused.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/postmortem/rank_report.h"

namespace ft {
namespace {

using Json = nlohmann::json;

constexpr int kMaxReportDepth = 16;
constexpr size_t kMaxReportedStreams = 64;
constexpr size_t kMaxReportedRecent = 4096;
constexpr size_t kMaxReportedAxes = 256;
constexpr double kLongestSeconds = 1e10;  // 300 years

// Reads fields, and remembers what was wrong with the first one that was.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}

  // What is not there keeps its value.
  void Text(const char* key, std::string& out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Refuse(key, "text");
    out = value->get<std::string>();
  }
  template <typename T>
  void Integer(const char* key, int64_t least, int64_t most, T& out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    const bool fits =
        value->is_number_unsigned()
            ? value->get<uint64_t>() <= static_cast<uint64_t>(most) &&
                  (least < 0 || value->get<uint64_t>() >= static_cast<uint64_t>(least))
            : value->is_number_integer() && value->get<int64_t>() >= least && value->get<int64_t>() <= most;
    if (!fits) return Refuse(key, fmt::format("a whole number from {} to {}", least, most));
    out = value->get<T>();
  }
  void Seconds(const char* key, double& out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_number() || !(std::abs(value->get<double>()) <= kLongestSeconds))
      return Refuse(key, "a number of seconds");
    out = value->get<double>();
  }
  void Flag(const char* key, bool& out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Refuse(key, "true or false");
    out = value->get<bool>();
  }
  void Time(const char* key, double& out) {
    std::string text, error;
    Text(key, text);
    if (text.empty()) return;
    absl::Time time;
    if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return Refuse(key, "a time");
    const double seconds = absl::ToDoubleSeconds(time - absl::UnixEpoch());
    if (!(std::abs(seconds) <= kLongestSeconds)) return Refuse(key, "a time of these centuries");
    out = seconds;
  }
  // Calls `read` for each entry, an object.
  template <typename Read>
  void Objects(const char* key, size_t most, Read read) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array() || value->size() > most)
      return Refuse(key, fmt::format("a list of at most {} entries", most));
    for (const Json& entry : *value) {
      if (!entry.is_object()) return Refuse(key, "a list of objects");
      if (status_.ok()) status_ = read(entry);
    }
  }
  template <typename Read>
  void Object(const char* key, Read read) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Refuse(key, "an object");
    if (status_.ok()) status_ = read(*value);
  }
  void Ranks(const char* key, int world_size, std::vector<int>& out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array() || value->size() > static_cast<size_t>(world_size))
      return Refuse(key, "a list of ranks");
    for (const Json& entry : *value) {
      if (!entry.is_number_integer() || entry.get<int64_t>() < 0 || entry.get<int64_t>() >= world_size)
        return Refuse(key, "a list of ranks");
      out.push_back(entry.get<int>());
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }

  bool Has(const char* key) const { return object_.contains(key); }
  void Refuse(const char* key, std::string_view wanted) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("'{}' is not {}", key, wanted));
  }
  void Demand(const char* key) {
    if (status_.ok() && !Has(key)) status_ = absl::InvalidArgumentError(fmt::format("it has no '{}'", key));
  }
  const absl::Status& status() const { return status_; }

 private:
  const Json* Find(const char* key) const {
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  const Json& object_;
  absl::Status status_;
};

absl::StatusOr<Json> ReportObject(std::string_view text) {
  if (text.size() > kMaxRankReportBytes)
    return absl::InvalidArgumentError(fmt::format("larger than {} bytes", kMaxRankReportBytes));
  if (text.find('\0') != std::string_view::npos) return absl::InvalidArgumentError("it is no JSON");
  bool too_deep = false;
  const auto bound_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxReportDepth;
    return depth <= kMaxReportDepth;
  };
  Json object = Json::parse(text, bound_depth, /*allow_exceptions=*/false);
  if (too_deep) return absl::InvalidArgumentError(fmt::format("it nests deeper than {}", kMaxReportDepth));
  if (object.is_discarded())
    return absl::InvalidArgumentError("it is no JSON, or was cut off while it was written");
  if (!object.is_object() || object.value("format", Json()) != "ft rank report")
    return absl::InvalidArgumentError("it is no report of a rank");
  return object;
}

absl::Status ReadInstruction(const Json& object, ReportedInstruction& out) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  FieldReader in(object);
  in.Text("program", out.program);
  in.Integer("instruction", 0, kMost, out.instruction);
  in.Text("title", out.title);
  in.Text("category", out.category);
  in.Text("layer", out.layer);
  in.Text("axis", out.axis);
  in.Text("shapes", out.shapes);
  in.Integer("bytes", 0, kMost, out.bytes);
  in.Seconds("began_s_ago", out.began_ago);
  in.Seconds("ended_s_ago", out.ended_ago);
  in.Seconds("took_s", out.took);
  return in.status();
}

absl::Status ReadStream(const Json& object, ReportedStream& out) {
  FieldReader in(object);
  in.Text("name", out.name);
  in.Flag("followed", out.is_followed);
  in.Integer("finished", 0, std::numeric_limits<int64_t>::max(), out.finished);
  in.Object("current", [&](const Json& entry) { return ReadInstruction(entry, out.current.emplace()); });
  in.Objects("recent", kMaxReportedRecent,
             [&](const Json& entry) { return ReadInstruction(entry, out.recent.emplace_back()); });
  return in.status();
}

absl::Status ReadActivity(const Json& object, ReportedActivity& out) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  FieldReader in(object);
  in.Text("name", out.name);
  in.Integer("step", 0, kMost, out.step);
  in.Integer("steps_done", 0, kMost, out.steps_done);
  in.Integer("micro_step", 0, kMost, out.micro_step);
  in.Seconds("for_s", out.seconds);
  return in.status();
}

void ReadWho(FieldReader& in, RankReport& out) {
  for (const char* key : {"rank", "world_size", "attempt", "taken"}) in.Demand(key);
  in.Integer("world_size", 1, kMaxReportedRanks, out.world_size);
  in.Integer("rank", 0, out.world_size - 1, out.rank);
  in.Integer("local_rank", 0, kMaxReportedRanks, out.local_rank);
  in.Integer("node", 0, kMaxReportedRanks, out.node);
  in.Text("host", out.host);
  in.Integer("pid", 0, std::numeric_limits<int32_t>::max(), out.pid);
  in.Integer("attempt", 0, kMaxAttempt, out.attempt);
  in.Text("run_id", out.run_id);
  in.Text("meeting", out.meeting);
  in.Text("plan", out.plan);
  in.Text("plan_hash", out.plan_hash);
  in.Time("started", out.started);
  in.Time("taken", out.taken);
  in.Object("mesh", [&](const Json& object) -> absl::Status {
    Mesh mesh;
    FieldReader fields(object);
    fields.Integer("replica", 1, kMaxReportedRanks, mesh.replica);
    fields.Integer("shard", 1, kMaxReportedRanks, mesh.shard);
    FT_RETURN_IF_ERROR(fields.status());
    if (int64_t{mesh.replica} * mesh.shard != out.world_size)
      return absl::InvalidArgumentError("its mesh has another number of ranks than 'world_size'");
    out.mesh = mesh;
    return absl::OkStatus();
  });
}

void ReadWhy(FieldReader& in, RankReport& out) {
  in.Text("cause", out.cause);
  in.Text("status", out.status);
  std::string origin = "self";
  in.Text("origin", origin);
  if (origin == "peer") {
    out.origin = ReportOrigin::kPeer;
  } else if (origin == "signal") {
    out.origin = ReportOrigin::kSignal;
  } else if (origin != "self") {
    in.Refuse("origin", "self, peer or signal");
  }
  if (in.Has("blamed_rank")) in.Integer("blamed_rank", 0, out.world_size - 1, out.blamed_rank.emplace());
  in.Flag("blamed_is_lost", out.blamed_is_lost);
  in.Integer("signal", 0, 1024, out.signal);
  in.Ranks("missing_ranks", out.world_size, out.missing_ranks);
}

void ReadWhere(FieldReader& in, RankReport& out) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  in.Object("activity", [&](const Json& object) { return ReadActivity(object, out.activity); });
  in.Object("saving", [&](const Json& object) { return ReadActivity(object, out.saving); });
  in.Object("program", [&](const Json& object) {
    FieldReader fields(object);
    fields.Text("name", out.program);
    fields.Integer("runs", 0, kMost, out.runs);
    fields.Seconds("for_s", out.program_seconds);
    return fields.status();
  });
  in.Objects("collectives", kMaxReportedAxes, [&](const Json& object) {
    ReportedCollectives& count = out.collectives.emplace_back();
    FieldReader fields(object);
    fields.Text("stream", count.stream);
    fields.Text("axis", count.axis);
    fields.Integer("entered", 0, kMost, count.entered);
    fields.Integer("left", 0, kMost, count.left);
    return fields.status();
  });
  in.Objects("streams", kMaxReportedStreams,
             [&](const Json& object) { return ReadStream(object, out.streams.emplace_back()); });
}

}  // namespace

absl::StatusOr<RankReport> ParseRankReport(std::string_view text) {
  FT_ASSIGN_OR_RETURN(const Json object, ReportObject(text));
  RankReport report;
  int64_t version = 0;
  FieldReader in(object);
  in.Integer("version", 0, std::numeric_limits<int32_t>::max(), version);
  if (in.status().ok() && version != kRankReportVersion)
    return absl::InvalidArgumentError(
        fmt::format("it is of version {}, and only {} is known here", version, kRankReportVersion));
  ReadWho(in, report);
  ReadWhy(in, report);
  ReadWhere(in, report);
  FT_RETURN_IF_ERROR(in.status());
  return report;
}

}  // namespace ft
