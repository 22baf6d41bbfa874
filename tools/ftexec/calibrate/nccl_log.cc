#include "tools/ftexec/calibrate/nccl_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/curve.h"
#include "runtime/cost/transfers.h"
#include "runtime/plan/verify_target_parts.h"
#include "tools/ftexec/calibrate/sample.h"

namespace ft {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // of a log
constexpr double kMostMessage = 1e13;                // bytes
constexpr double kMostBytesPerMicro = 1e9;           // as a target takes rates

// Of Abseil, whose numbers and splits are read with.
using Words = std::vector<absl::string_view>;

std::string Shown(absl::string_view text) { return Printable(std::string(text)); }

bool IsCount(absl::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
}

// "all_gather" of "./build/all_gather_perf" and "all_gather_perf_mpi:"; empty for what is no test.
absl::string_view TestIn(absl::string_view word) {
  word = word.substr(word.rfind('/') + 1);
  while (!word.empty() && absl::ascii_ispunct(word.back())) word.remove_suffix(1);
  absl::ConsumeSuffix(&word, "_mpi");
  return absl::ConsumeSuffix(&word, "_perf") ? word : absl::string_view();
}

std::optional<proto::Opcode> KindOf(absl::string_view test) {
  if (test == "all_gather") return proto::ALL_GATHER;
  if (test == "reduce_scatter") return proto::REDUCE_SCATTER;
  if (test == "all_reduce") return proto::ALL_REDUCE;
  return std::nullopt;
}

class NcclLogReader {
 public:
  absl::Status Read(std::string_view text) {
    log_ = {};
    for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      ++log_.line;
      FT_RETURN_IF_ERROR(Take(absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())));
    }
    if (log_.tables) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "has no table of all_gather_perf, reduce_scatter_perf or all_reduce_perf with a size above 0");
  }

  absl::StatusOr<std::vector<Target::Collective>> Collectives() const {
    std::vector<Target::Collective> all;
    for (const auto& [group, by_bytes] : seconds_) {
      if (by_bytes.size() > size_t{kMostPoints})
        return absl::InvalidArgumentError(
            fmt::format("the logs have {} sizes of one collective; a target has at most {}", by_bytes.size(),
                        kMostPoints));
      Target::Collective& one = all.emplace_back();
      one.set_opcode(std::get<0>(group));
      one.set_nodes(std::get<1>(group));
      one.set_ranks_on_node(std::get<2>(group));
      for (const auto& [bytes, seconds] : by_bytes)
        AddPoint(bytes, bytes / MiddleOf(seconds), *one.mutable_bytes_per_s());
    }
    return all;
  }

 private:
  // What has been read of one.
  struct Log {
    int line = 0;
    bool tables = false;                 // of what is looked for
    std::string test;                    // that the next table is of
    std::map<int, std::string> hosts;    // by rank, of the last list
    std::set<std::string> groups;        // of those ranks
    std::optional<size_t> time_column;   // of the last head of a table
    std::optional<size_t> wrong_column;  // how many elements were wrong
    bool host_times = false;             // that column has
    bool in_table = false;               // since the last list
    bool named = false;                  // since the last row
  };

  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("line {}: {}", log_.line, what));
  }

  // Launchers may put a label before each line: what is looked for stands behind it.
  absl::Status Take(const Words& words) {
    for (size_t i = 1; i + 1 < words.size(); ++i)
      if (words[i] == "Rank" && absl::EndsWith(words[i - 1], "#"))
        return TakeRank(words, i), absl::OkStatus();
    for (const absl::string_view word : words)
      if (const absl::string_view test = TestIn(word); !test.empty()) {
        log_.test = std::string(test);
        log_.named = true;
      }
    const auto size = std::find(words.begin(), words.end(), "size");
    if (words.end() - size > 2 && size[1] == "count" && size[2] == "type")
      return TakeHead(size, words.end()), absl::OkStatus();
    double number = 0;
    for (size_t i = 0; log_.time_column.has_value() && i < 2 && i + *log_.time_column + 2 < words.size(); ++i)
      if (IsCount(words[i]) && IsCount(words[i + 1]) && !absl::SimpleAtod(words[i + 2], &number))
        return TakeRow(words.data() + i, words.size() - i);
    return absl::OkStatus();
  }

  // "#  Rank  3 Group  0 Pid   4711 on  node-1 device  3 [0x47] NVIDIA H100"; old ones have no group.
  void TakeRank(const Words& words, size_t at) {
    int rank = 0;
    const auto on = std::find(words.begin() + static_cast<std::ptrdiff_t>(at), words.end(), "on");
    if (!absl::SimpleAtoi(words[at + 1], &rank) || words.end() - on < 2) return;
    if (log_.in_table || log_.hosts.contains(rank)) {
      // Another list: of another test, unless it was named since.
      log_.hosts.clear();
      log_.groups.clear();
      if (log_.in_table && !log_.named) log_.test.clear();
      log_.in_table = false;
    }
    log_.hosts.emplace(rank, on[1]);
    const auto group = std::find(words.begin() + static_cast<std::ptrdiff_t>(at), on, "Group");
    log_.groups.insert(on - group > 1 ? std::string(group[1]) : "");
  }

  // "size count type redop root time algbw busbw #wrong time ...": times out of place come first. Old ones
  // have no root or operation.
  void TakeHead(Words::const_iterator size, Words::const_iterator end) {
    const auto time =
        std::find_if(size, end, [](absl::string_view word) { return word == "time" || word == "cputime"; });
    log_.time_column = time == end ? std::nullopt : std::optional<size_t>(time - size);
    log_.host_times = time != end && *time == "cputime";
    const auto wrong = std::find(time, end, "#wrong");
    log_.wrong_column = wrong == end ? std::nullopt : std::optional<size_t>(wrong - size);
  }

  absl::Status TakeRow(const absl::string_view* words, size_t count) {
    const absl::string_view size = words[0], time = words[*log_.time_column];
    if (log_.test.empty())
      return Error(
          "does not say which test this table is of: put a line with its name before it, such as "
          "all_gather_perf");
    log_.in_table = true;
    log_.named = false;
    const std::optional<proto::Opcode> kind = KindOf(log_.test);
    if (!kind.has_value()) return absl::OkStatus();
    if (log_.host_times) return Error("has times of the host (-C 1), not those of collectives");
    FT_ASSIGN_OR_RETURN(const auto layout, Layout());
    double bytes = 0, us = 0;
    if (!absl::SimpleAtod(size, &bytes) || !absl::SimpleAtod(time, &us) || !(us >= 0) || us > 1e12)
      return Error(fmt::format("'{}' is no time in microseconds", Shown(time)));
    if (bytes == 0) return absl::OkStatus();
    if (us == 0) return Error("takes no time: it was not measured");
    if (layout.first * layout.second == 1) return absl::OkStatus();
    if (bytes > kMostMessage) return Error(fmt::format("'{}' is no size of a message", Shown(size)));
    if (bytes / us > kMostBytesPerMicro)
      return Error(fmt::format("{:g} bytes in {:g} us are more than a link can carry", bytes, us));
    int64_t wrong = 0;
    if (log_.wrong_column.has_value() && *log_.wrong_column < count &&
        absl::SimpleAtoi(words[*log_.wrong_column], &wrong) && wrong != 0)
      return Error(fmt::format("has {} wrong elements: such a link is not to be predicted", wrong));
    log_.tables = true;
    seconds_[{*kind, layout.first, layout.second}][bytes].push_back(us * 1e-6);
    return absl::OkStatus();
  }

  // Nodes, and ranks on each.
  absl::StatusOr<std::pair<uint32_t, uint32_t>> Layout() const {
    if (log_.hosts.empty())
      return Error(
          "has a table without a list of ranks ('# Rank 0 ... on HOST') before it: which are on one node is "
          "not known");
    if (log_.groups.size() > 1)
      return Error("is of ranks in several groups: which of them are one is not known");
    std::map<std::string, uint32_t> ranks;
    for (const auto& [rank, host] : log_.hosts) ++ranks[host];
    const uint32_t on_node = ranks.begin()->second;
    for (const auto& [host, count] : ranks)
      if (count != on_node) return Error("is of ranks that lie unevenly on their nodes");
    if (on_node > kMostRanksOnNode)
      return Error(fmt::format("has {} ranks on a node, more than the {} that a machine file takes", on_node,
                               kMostRanksOnNode));
    return std::pair(static_cast<uint32_t>(ranks.size()), on_node);
  }

  Log log_;
  std::map<std::tuple<proto::Opcode, uint32_t, uint32_t>, std::map<double, std::vector<double>>> seconds_;
};

bool SameGroups(const Target::Collective& a, const Target::Collective& b) {
  return a.opcode() == b.opcode() && a.nodes() == b.nodes() && a.ranks_on_node() == b.ranks_on_node();
}

}  // namespace

absl::StatusOr<std::vector<Target::Collective>> ReadNcclLog(std::string_view text) {
  NcclLogReader reader;
  FT_RETURN_IF_ERROR(reader.Read(text));
  return reader.Collectives();
}

absl::StatusOr<std::vector<Target::Collective>> ReadNcclLogs(const std::string& paths) {
  NcclLogReader reader;
  const Words all = absl::StrSplit(paths, ',', absl::SkipEmpty());
  if (all.empty() && !paths.empty()) return absl::InvalidArgumentError("--calibrate-links names no file");
  for (const absl::string_view path : all) {
    FT_ASSIGN_OR_RETURN(const std::string text,
                        ReadText(std::string(path), "the log of nccl-tests", kMostBytes));
    if (const absl::Status read = reader.Read(text); !read.ok())
      return absl::InvalidArgumentError(fmt::format("'{}': {}", Shown(path), std::string(read.message())));
  }
  return reader.Collectives();
}

void TakeCollectives(std::vector<Target::Collective> collectives, Target& target) {
  std::stable_sort(collectives.begin(), collectives.end(), [](const auto& a, const auto& b) {
    return a.nodes() * a.ranks_on_node() < b.nodes() * b.ranks_on_node();
  });
  for (const Target::Collective& one : collectives) {
    auto& known = *target.mutable_collectives();
    known.erase(
        std::remove_if(known.begin(), known.end(), [&](const auto& other) { return SameGroups(one, other); }),
        known.end());
    *known.Add() = one;
    if (one.opcode() == proto::ALL_GATHER) SetLinkFrom(one, target);
    target.set_ranks_per_node(std::max(target.ranks_per_node(), one.ranks_on_node()));
  }
}

}  // namespace ft
