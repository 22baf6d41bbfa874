#include "runtime/postmortem/rank_report.h"

#include <cmath>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace ft {
namespace {

using json = nlohmann::ordered_json;

std::string TimeText(double seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::UnixEpoch() + absl::Seconds(seconds),
                          absl::UTCTimeZone());
}

// Microseconds are enough, and short.
double Rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

void AddText(json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

void AddSeconds(json& object, const char* key, double seconds) {
  if (seconds >= 0) object[key] = Rounded(seconds);
}

json InstructionJson(const ReportedInstruction& instruction) {
  json object = json::object();
  AddText(object, "program", instruction.program);
  if (instruction.instruction >= 0) object["instruction"] = instruction.instruction;
  object["title"] = instruction.title;
  AddText(object, "category", instruction.category);
  AddText(object, "layer", instruction.layer);
  AddText(object, "axis", instruction.axis);
  AddText(object, "shapes", instruction.shapes);
  if (instruction.bytes > 0) object["bytes"] = instruction.bytes;
  AddSeconds(object, "began_s_ago", instruction.began_ago);
  AddSeconds(object, "ended_s_ago", instruction.ended_ago);
  AddSeconds(object, "took_s", instruction.took);
  return object;
}

json StreamJson(const ReportedStream& stream) {
  json object = {{"name", stream.name}, {"followed", stream.is_followed}, {"finished", stream.finished}};
  if (stream.current.has_value()) object["current"] = InstructionJson(*stream.current);
  json recent = json::array();
  for (const ReportedInstruction& instruction : stream.recent) recent.push_back(InstructionJson(instruction));
  if (!recent.empty()) object["recent"] = std::move(recent);
  return object;
}

json ActivityJson(const ReportedActivity& activity) {
  json object = {{"name", activity.name}};
  if (activity.step >= 0) object["step"] = activity.step;
  if (activity.steps_done >= 0) object["steps_done"] = activity.steps_done;
  if (activity.micro_step >= 0) object["micro_step"] = activity.micro_step;
  object["for_s"] = Rounded(activity.seconds);
  return object;
}

const char* OriginText(ReportOrigin origin) {
  switch (origin) {
    case ReportOrigin::kSelf:
      return "self";
    case ReportOrigin::kPeer:
      return "peer";
    case ReportOrigin::kSignal:
      return "signal";
  }
  return "self";
}

void AddWho(const RankReport& report, json& object) {
  object["format"] = "ft rank report";
  object["version"] = kRankReportVersion;
  object["rank"] = report.rank;
  object["world_size"] = report.world_size;
  object["local_rank"] = report.local_rank;
  object["node"] = report.node;
  object["host"] = report.host;
  object["pid"] = report.pid;
  object["attempt"] = report.attempt;
  object["run_id"] = report.run_id;
  AddText(object, "meeting", report.meeting);
  AddText(object, "plan", report.plan);
  AddText(object, "plan_hash", report.plan_hash);
  if (report.mesh.has_value())
    object["mesh"] = {{"replica", report.mesh->replica}, {"shard", report.mesh->shard}};
  object["started"] = TimeText(report.started);
  object["taken"] = TimeText(report.taken);
}

void AddWhy(const RankReport& report, json& object) {
  object["cause"] = report.cause;
  object["status"] = report.status;
  object["origin"] = OriginText(report.origin);
  if (report.blamed_rank.has_value()) {
    object["blamed_rank"] = *report.blamed_rank;
    object["blamed_is_lost"] = report.blamed_is_lost;
  }
  if (report.signal != 0) object["signal"] = report.signal;
  if (!report.missing_ranks.empty()) object["missing_ranks"] = report.missing_ranks;
}

void AddWhere(const RankReport& report, json& object) {
  if (!report.activity.name.empty()) object["activity"] = ActivityJson(report.activity);
  if (!report.saving.name.empty()) object["saving"] = ActivityJson(report.saving);
  if (report.runs > 0) {
    json program = json::object();
    AddText(program, "name", report.program);
    program["runs"] = report.runs;
    if (!report.program.empty()) program["for_s"] = Rounded(report.program_seconds);
    object["program"] = std::move(program);
  }
  json streams = json::array(), collectives = json::array();
  for (const ReportedCollectives& count : report.collectives) {
    json entry = {{"stream", count.stream}};
    AddText(entry, "axis", count.axis);
    entry["entered"] = count.entered;
    entry["left"] = count.left;
    collectives.push_back(std::move(entry));
  }
  for (const ReportedStream& stream : report.streams) streams.push_back(StreamJson(stream));
  if (!collectives.empty()) object["collectives"] = std::move(collectives);
  if (!streams.empty()) object["streams"] = std::move(streams);
}

}  // namespace

std::string RankReportName(int rank, int attempt) {
  return fmt::format("rank{}.attempt{}{}", rank, attempt, kRankReportSuffix);
}

std::string RankReportText(const RankReport& report) {
  json object = json::object();
  AddWho(report, object);
  AddWhy(report, object);
  AddWhere(report, object);
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ft
