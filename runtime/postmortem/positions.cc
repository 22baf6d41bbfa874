#include "runtime/postmortem/positions.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "fmt/format.h"

namespace ft {
namespace {

bool Contains(const std::vector<int>& ranks, int rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

// All ranks along the axis through `rank`, ascending; all of the run where the mesh is not known.
std::vector<int> GroupOf(const RankReport& report, std::string_view axis) {
  std::vector<int> group;
  const Mesh mesh = report.mesh.value_or(Mesh{1, report.world_size});
  if (axis == "shard") {
    const int first = mesh.ReplicaRank(report.rank) * mesh.shard;
    for (int i = 0; i < mesh.shard; ++i) group.push_back(first + i);
  } else if (axis == "replica") {
    for (int i = 0; i < mesh.replica; ++i) group.push_back(mesh.ShardRank(report.rank) + i * mesh.shard);
  } else {
    for (int i = 0; i < report.world_size; ++i) group.push_back(i);
  }
  return group;
}

const ReportedCollectives* FindCount(const RankReport& report, std::string_view stream,
                                     std::string_view axis) {
  for (const ReportedCollectives& count : report.collectives) {
    if (count.stream == stream && (count.axis == axis || count.axis.empty())) return &count;
  }
  return nullptr;
}

bool StandsIn(const RankReport& report, const Gathering& gathering) {
  const ReportedStream* stream = FindStream(report, gathering.stream);
  return stream != nullptr && stream->current.has_value() && IsCollective(*stream->current) &&
         report.runs == gathering.run && stream->current->program == gathering.what->program &&
         stream->current->instruction == gathering.what->instruction;
}

// Whether a rank that does not stand in the collective has left it. Each rank of the group counts the same.
bool IsPast(const RankReport& report, const Gathering& gathering) {
  const ReportedCollectives* count = FindCount(report, gathering.stream, gathering.what->axis);
  if (count != nullptr && gathering.number > 0) return count->left >= gathering.number;
  return report.runs > gathering.run;
}

void Place(const Attempt& attempt, Gathering& gathering) {
  // Sorted by rank, as the group is.
  auto report = attempt.reports.begin();
  std::set<int> missing;
  for (const int rank : gathering.group) {
    while (report != attempt.reports.end() && report->rank < rank) ++report;
    if (report == attempt.reports.end() || report->rank != rank) {
      gathering.absent.push_back(rank);
    } else if (StandsIn(*report, gathering)) {
      gathering.waiting.push_back(rank);
      gathering.seconds.push_back(FindStream(*report, gathering.stream)->current->began_ago);
      missing.insert(report->missing_ranks.begin(), report->missing_ranks.end());
    } else {
      (IsPast(*report, gathering) ? gathering.past : gathering.behind).push_back(rank);
    }
  }
  // Whose time was over has seen who was not there. Others may have been ended while they waited like itself.
  for (const int rank : missing) {
    if (Contains(gathering.waiting, rank)) gathering.late.push_back(rank);
  }
  std::vector<int> named;
  for (const int rank : gathering.absent) {
    if (missing.count(rank) > 0) named.push_back(rank);
  }
  if (!named.empty()) gathering.absent = std::move(named);
}

}  // namespace

bool IsCollective(const ReportedInstruction& instruction) {
  return !instruction.axis.empty() && instruction.category != "wait";
}

std::vector<int> Gathering::Blockers() const {
  std::vector<int> blockers = behind;
  blockers.insert(blockers.end(), late.begin(), late.end());
  blockers.insert(blockers.end(), absent.begin(), absent.end());
  std::sort(blockers.begin(), blockers.end());
  return blockers;
}

std::vector<Gathering> FindGatherings(const Attempt& attempt, size_t most) {
  // By stream, run, program, instruction, and the first rank of the group.
  std::map<std::tuple<std::string, uint64_t, std::string, int64_t, int>, Gathering> found;
  std::map<std::pair<const RankReport*, std::string>, int> first_ranks;
  for (const RankReport& report : attempt.reports) {
    for (const ReportedStream& stream : report.streams) {
      if (!stream.current.has_value() || !IsCollective(*stream.current)) continue;
      const ReportedInstruction& what = *stream.current;
      const Mesh mesh = report.mesh.value_or(Mesh{1, report.world_size});
      const int first = what.axis == "shard"     ? mesh.ReplicaRank(report.rank) * mesh.shard
                        : what.axis == "replica" ? mesh.ShardRank(report.rank)
                                                 : 0;
      Gathering& gathering = found[{stream.name, report.runs, what.program, what.instruction, first}];
      if (gathering.first != nullptr) continue;
      gathering.first = &report;
      gathering.what = &what;
      gathering.stream = stream.name;
      gathering.run = report.runs;
      if (const ReportedCollectives* count = FindCount(report, stream.name, what.axis); count != nullptr)
        gathering.number = count->entered;
    }
  }
  std::vector<Gathering> gatherings;
  for (auto& [key, gathering] : found) {
    // What stands in thousands of places is not the trace of one run.
    if (gatherings.size() >= 16 * most) break;
    gathering.group = GroupOf(*gathering.first, gathering.what->axis);
    Place(attempt, gathering);
    gatherings.push_back(std::move(gathering));
  }
  std::stable_sort(gatherings.begin(), gatherings.end(), [](const Gathering& a, const Gathering& b) {
    return a.waiting.size() > b.waiting.size();
  });
  if (gatherings.size() > most) gatherings.resize(most);
  return gatherings;
}

std::vector<int> Culprits(const std::vector<Gathering>& gatherings) {
  std::set<int> blockers, waiting;
  for (const Gathering& gathering : gatherings) {
    const std::vector<int> held_up = gathering.Blockers();
    blockers.insert(held_up.begin(), held_up.end());
    if (held_up.empty()) continue;
    for (const int rank : gathering.waiting) {
      if (!Contains(gathering.late, rank)) waiting.insert(rank);
    }
  }
  std::vector<int> culprits;
  std::set_difference(blockers.begin(), blockers.end(), waiting.begin(), waiting.end(),
                      std::back_inserter(culprits));
  // Each waits for another one: then it is all of them.
  if (culprits.empty()) culprits.assign(blockers.begin(), blockers.end());
  return culprits;
}

SchedulePlace PlaceOf(const RankReport& report) {
  SchedulePlace place = {.run = report.runs, .program = report.program};
  if (report.program.empty()) {  // it has finished that run
    place.instruction = std::numeric_limits<int64_t>::max();
    return place;
  }
  const ReportedStream* compute = FindStream(report, "compute");
  if (compute == nullptr) return place;
  if (compute->current.has_value()) {
    place.instruction = compute->current->instruction;
  } else if (!compute->recent.empty() && compute->recent.back().program == report.program) {
    place.instruction = compute->recent.back().instruction;
  }
  return place;
}

const ReportedStream* FindStream(const RankReport& report, std::string_view name) {
  for (const ReportedStream& stream : report.streams) {
    if (stream.name == name) return &stream;
  }
  return nullptr;
}

const RankReport* FindReport(const Attempt& attempt, int rank) {
  const auto at = std::lower_bound(attempt.reports.begin(), attempt.reports.end(), rank,
                                   [](const RankReport& report, int r) { return report.rank < r; });
  return at == attempt.reports.end() || at->rank != rank ? nullptr : &*at;
}

std::vector<int> AbsentRanks(const Attempt& attempt) {
  std::vector<int> absent;
  auto report = attempt.reports.begin();
  for (int rank = 0; rank < attempt.world_size; ++rank) {
    if (report != attempt.reports.end() && report->rank == rank) {
      ++report;
    } else {
      absent.push_back(rank);
    }
  }
  return absent;
}

}  // namespace ft
