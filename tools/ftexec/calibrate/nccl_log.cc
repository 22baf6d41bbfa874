#include "tools/ftexec/calibrate/nccl_log.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/curve.h"
#include "runtime/cost/transfers.h"
#include "tools/ftexec/calibrate/sample.h"

namespace ft {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // of a log
constexpr size_t kFiguresOfBoth = 8;                 // at the end of a row: time, two rates and errors, twice

// Of Abseil, whose numbers and splits are read with.
using Words = std::vector<absl::string_view>;

std::string Shown(absl::string_view text) { return Printable(std::string(text)); }

struct Test {
  absl::string_view name;
  std::optional<proto::Opcode> kind;  // none: of a collective that no plan has
};
constexpr Test kTests[] = {{"all_gather_perf", proto::ALL_GATHER},
                           {"reduce_scatter_perf", proto::REDUCE_SCATTER},
                           {"all_reduce_perf", proto::ALL_REDUCE},
                           {"alltoall_perf", {}},
                           {"broadcast_perf", {}},
                           {"gather_perf", {}},
                           {"hypercube_perf", {}},
                           {"reduce_perf", {}},
                           {"scatter_perf", {}},
                           {"sendrecv_perf", {}}};

// "./build/all_gather_perf" and "all_gather_perf_mpi" are all_gather_perf, the first in the table that is
// within.
const Test* TestIn(absl::string_view word) {
  const auto found = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const Test& test) { return absl::StrContains(word, test.name); });
  return found == std::end(kTests) ? nullptr : found;
}

class NcclLogReader {
 public:
  absl::StatusOr<std::vector<Target::Collective>> Read(std::string_view text) {
    for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      ++line_;
      FT_RETURN_IF_ERROR(Take(absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())));
    }
    if (seconds_.empty())
      return absl::InvalidArgumentError(
          "has no table of all_gather_perf, reduce_scatter_perf or all_reduce_perf with a size above 0");
    return Collectives();
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("line {}: {}", line_, what));
  }

  // Launchers may put a label before each line: what is looked for stands behind it.
  absl::Status Take(const Words& words) {
    for (const absl::string_view word : words)
      if (const Test* test = TestIn(word)) test_ = test;
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "Rank" && i > 0 && absl::EndsWith(words[i - 1], "#")) return TakeRank(words, i);
    for (size_t i = 0; i + kFiguresOfBoth + 3 <= words.size() && i < 2; ++i)
      if (IsRow(words, i)) return TakeRow(words, i);
    return absl::OkStatus();
  }

  // "#  Rank  3 Group  0 Pid   4711 on  node-1 device  3 [0x47] NVIDIA H100"
  absl::Status TakeRank(const Words& words, size_t at) {
    int rank = 0;
    const auto on = std::find(words.begin() + static_cast<std::ptrdiff_t>(at), words.end(), "on");
    if (!absl::SimpleAtoi(words[at + 1], &rank) || on == words.end() || on + 1 == words.end())
      return absl::OkStatus();
    if (std::exchange(in_table_, false)) hosts_.clear();
    hosts_.insert_or_assign(rank, std::string(on[1]));
    return absl::OkStatus();
  }

  // Size, count and type; operation and root, which old ones lack; time and rates out of place and in place.
  static bool IsRow(const Words& words, size_t at) {
    double number = 0;
    const size_t count = words.size() - at;
    const auto is_number = [&](size_t i) { return absl::SimpleAtod(words[at + i], &number); };
    const auto is_count = [&](const absl::string_view word) {
      return std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
    };
    return (count == kFiguresOfBoth + 3 || count == kFiguresOfBoth + 5) && is_count(words[at]) &&
           is_count(words[at + 1]) && !is_number(2) && is_number(count - kFiguresOfBoth);
  }

  absl::Status TakeRow(const Words& words, size_t at) {
    if (test_ == nullptr)
      return Error(
          "does not say which test this table is of: put a line with its name before it, such as "
          "all_gather_perf");
    in_table_ = true;
    if (!test_->kind.has_value()) return absl::OkStatus();
    if (hosts_.empty())
      return Error(
          "has a table without a list of ranks ('# Rank 0 ... on HOST') before it: which are on one node is "
          "not known");
    FT_ASSIGN_OR_RETURN(const auto layout, Layout());
    double bytes = 0, us = 0;
    if (!absl::SimpleAtod(words[at], &bytes) ||
        !absl::SimpleAtod(words[words.size() - kFiguresOfBoth], &us) || !(us >= 0) || us > 1e12)
      return Error(
          fmt::format("'{}' is no time in microseconds", Shown(words[words.size() - kFiguresOfBoth])));
    if (bytes == 0) return absl::OkStatus();
    if (us == 0) return Error("takes no time: it was not measured");
    if (layout.first * layout.second > 1)
      seconds_[{*test_->kind, layout.first, layout.second}][bytes].push_back(us * 1e-6);
    return absl::OkStatus();
  }

  // Nodes, and ranks on each.
  absl::StatusOr<std::pair<uint32_t, uint32_t>> Layout() const {
    absl::flat_hash_map<std::string, uint32_t> ranks;
    for (const auto& [rank, host] : hosts_) ++ranks[host];
    const uint32_t on_node = ranks.begin()->second;
    for (const auto& [host, count] : ranks)
      if (count != on_node) return Error("is of ranks that lie unevenly on their nodes");
    return std::pair(static_cast<uint32_t>(ranks.size()), on_node);
  }

  std::vector<Target::Collective> Collectives() const {
    std::vector<Target::Collective> all;
    for (const auto& [group, by_bytes] : seconds_) {
      Target::Collective& one = all.emplace_back();
      one.set_opcode(std::get<0>(group));
      one.set_nodes(std::get<1>(group));
      one.set_ranks_on_node(std::get<2>(group));
      for (const auto& [bytes, seconds] : by_bytes)
        AddPoint(bytes, bytes / MiddleOf(seconds), *one.mutable_bytes_per_s());
    }
    return all;
  }

  int line_ = 0;
  const Test* test_ = nullptr;
  bool in_table_ = false;
  std::map<int, std::string> hosts_;  // by rank
  std::map<std::tuple<proto::Opcode, uint32_t, uint32_t>, std::map<double, std::vector<double>>> seconds_;
};

bool SameGroups(const Target::Collective& a, const Target::Collective& b) {
  return a.opcode() == b.opcode() && a.nodes() == b.nodes() && a.ranks_on_node() == b.ranks_on_node();
}

}  // namespace

absl::StatusOr<std::vector<Target::Collective>> ReadNcclLog(std::string_view text) {
  return NcclLogReader().Read(text);
}

absl::StatusOr<std::vector<Target::Collective>> ReadNcclLogs(const std::string& paths) {
  std::vector<Target::Collective> all;
  for (const absl::string_view path : absl::StrSplit(paths, ',', absl::SkipEmpty())) {
    FT_ASSIGN_OR_RETURN(const std::string text,
                        ReadText(std::string(path), "the log of nccl-tests", kMostBytes));
    absl::StatusOr<std::vector<Target::Collective>> read = ReadNcclLog(text);
    if (!read.ok())
      return absl::InvalidArgumentError(
          fmt::format("'{}': {}", Shown(path), std::string(read.status().message())));
    std::move(read->begin(), read->end(), std::back_inserter(all));
  }
  return all;
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
  }
}

}  // namespace ft
