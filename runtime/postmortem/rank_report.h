// What a rank that is ended leaves in --log-dir: where it stood, and why it ended. JSON, one file per rank
// and attempt; docs/postmortem.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/mesh.h"

namespace ft {

inline constexpr int kRankReportVersion = 1;
inline constexpr size_t kMaxRankReportBytes = size_t{1} << 20;
inline constexpr int kMaxReportedRanks = 1 << 20;
inline constexpr int kMaxAttempt = 1 << 30;

// "rank3.attempt0.report.json", beside "rank3.log".
std::string RankReportName(int rank, int attempt);
inline constexpr std::string_view kRankReportSuffix = ".report.json";

// An instruction of the plan, as a stream was or is in it. Times are seconds before the positions were taken;
// negative: not known.
struct ReportedInstruction {
  std::string program;  // empty: it is of none (copies of inputs)
  int64_t instruction = -1;
  std::string title;      // "matmul", "all_gather transformer.h.3"
  std::string category;   // its phase, or "wait": the stream waits for another one, before the instruction
  std::string layer;      // of the model
  std::string axis;       // of a collective: "shard", "replica", "world"; else empty
  std::string shapes;     // on this rank; of what runs alone
  uint64_t bytes = 0;     // of what runs alone
  double began_ago = -1;  // what runs
  double ended_ago = -1;  // what has finished
  double took = -1;       // likewise; seconds
};

struct ReportedStream {
  std::string name;          // "compute", "gather", ...
  bool is_followed = false;  // else only its collectives are known, by what the device says
  uint64_t finished = 0;     // instructions since the rank began
  std::optional<ReportedInstruction> current = {};
  std::vector<ReportedInstruction> recent = {};  // finished, oldest first
};

// Collectives of a stream over an axis; an empty axis stands for all of the stream's.
struct ReportedCollectives {
  std::string stream, axis;
  uint64_t entered = 0, left = 0;
};

struct ReportedActivity {
  std::string name;  // Name(Activity); empty: none
  int64_t step = -1, micro_step = -1;
  int64_t steps_done = -1;  // in place of `step`, between two of them
  double seconds = 0;       // for so long
};

enum class ReportOrigin {
  kSelf,    // this rank ended the run, as far as it knows
  kPeer,    // another one was lost or failed
  kSignal,  // somebody ended it
};

struct RankReport {
  int rank = 0, world_size = 1, local_rank = 0, node = 0;
  std::string host;
  int64_t pid = 0;
  int attempt = 0;      // counted by the launcher, from 0
  std::string run_id;   // the launcher's
  std::string meeting;  // equal for the ranks that met, and for no others; empty: they had not met
  std::string plan, plan_hash;
  std::optional<Mesh> mesh;       // not known yet: absent
  double started = 0, taken = 0;  // seconds since 1970: the process, the positions

  std::string cause;   // the line of the error
  std::string status;  // "UNAVAILABLE"
  ReportOrigin origin = ReportOrigin::kSelf;
  std::optional<int> blamed_rank;  // by kPeer
  bool blamed_is_lost = false;
  int signal = 0;
  std::vector<int> missing_ranks;  // those that it waited for when its time was over

  ReportedActivity activity, saving;
  std::string program;  // that runs; empty: none
  uint64_t runs = 0;    // programs begun
  double program_seconds = 0;
  std::vector<ReportedStream> streams;
  std::vector<ReportedCollectives> collectives;
};

std::string RankReportText(const RankReport& report);

// The reverse, of text that anybody may have written: bounded, and consistent in itself. Errors:
// InvalidArgument, without the file's name.
absl::StatusOr<RankReport> ParseRankReport(std::string_view text);

}  // namespace ft
