// Where the ranks of an attempt stood, compared: who waited in which collective, and who had not come there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/postmortem/read_reports.h"

namespace ft {

// A collective in which ranks stood: one call of one instruction, of one group of ranks.
struct Gathering {
  const RankReport* first = nullptr;          // a rank that stood in it
  const ReportedInstruction* what = nullptr;  // on that rank
  std::string stream;
  uint64_t run = 0;             // of the program, as programs are counted from the start
  uint64_t number = 0;          // among those of its stream and axis, from 1; 0: not known
  std::vector<int> group;       // all ranks of the collective
  std::vector<int> waiting;     // that stood in it
  std::vector<double> seconds;  // for how long, by waiting; negative: not known
  std::vector<int> behind;      // have a report, and had not come
  std::vector<int> late;        // came after another's time was over
  std::vector<int> past;        // had left it
  std::vector<int> absent;      // have no report
  // Those of them that held the others up, as far as can be told.
  std::vector<int> Blockers() const;
};

// Which collective `instruction` is may be said of such that run, not of waits for them.
bool IsCollective(const ReportedInstruction& instruction);

// Gatherings of the attempt, at most `most`, those with the most ranks first.
std::vector<Gathering> FindGatherings(const Attempt& attempt, size_t most = 64);

// Ranks that held up others while they themselves waited for nobody: those that the rest waited for, in the
// end.
std::vector<int> Culprits(const std::vector<Gathering>& gatherings);

// How far a rank is in the schedule, which is the same on all ranks.
struct SchedulePlace {
  uint64_t run = 0;
  int64_t instruction = -1;  // of stream compute: what it was in, or has finished last
  std::string program;
  friend auto operator<=>(const SchedulePlace&, const SchedulePlace&) = default;
};
SchedulePlace PlaceOf(const RankReport& report);

// The rank's stream of this name; null: it has none.
const ReportedStream* FindStream(const RankReport& report, std::string_view name);

const RankReport* FindReport(const Attempt& attempt, int rank);

// Ranks of the attempt without a report, ascending.
std::vector<int> AbsentRanks(const Attempt& attempt);

}  // namespace ft
