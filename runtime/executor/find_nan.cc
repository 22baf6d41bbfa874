#include "runtime/executor/find_nan.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/ranks_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"

namespace ft {
namespace {

constexpr size_t kMostOps = 6;  // of a cluster that are named
constexpr char kCut[] = "...";

// Of fixed size, as it travels.
struct Record {
  NanFinding::Kind kind = NanFinding::Kind::kNothing;
  int32_t length = 0;  // of the text
  int64_t micro_step = 0, instruction = 0;
  char text[1000] = {};
};

// "matmul", or "cluster of mul, reduce_sum, rsqrt".
std::string OpText(const proto::Plan& plan, const proto::Instruction& instruction) {
  if (instruction.cluster_plus_one() == 0) return InstructionTitle(plan, instruction);
  std::vector<std::string> ops;
  size_t more = 0;
  const auto cluster = static_cast<int>(instruction.cluster_plus_one()) - 1;
  for (const proto::Cluster::Op& op : plan.clusters(cluster).ops()) {
    if (std::find(ops.begin(), ops.end(), op.name()) != ops.end()) continue;
    if (ops.size() < kMostOps) {
      ops.push_back(op.name());
    } else {
      ++more;
    }
  }
  return absl::StrCat("cluster of ", absl::StrJoin(ops, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

// "micro-step 3, layer h.4, matmul (forward, train_micro 57)"
std::string PlaceText(const proto::Plan& plan, const NanOrigin& origin) {
  const proto::Program& program = plan.programs(origin.program);
  const proto::Instruction& instruction = program.instructions(origin.instruction);
  std::string text;
  if (plan.micro_steps() > 1) absl::StrAppend(&text, "micro-step ", origin.micro_step + 1, ", ");
  if (!instruction.layer().empty()) absl::StrAppend(&text, "layer ", instruction.layer(), ", ");
  absl::StrAppend(&text, OpText(plan, instruction), " (", instruction.phase(),
                  instruction.phase().empty() ? "" : ", ", program.name(), " ", origin.instruction, ")");
  return text;
}

// "3 of 4096 elements are NaN and 2 infinite, first at 17"
std::string NumbersText(const proto::Plan& plan, const NanOrigin& origin) {
  const int64_t nan = origin.numbers.nan, infinite = origin.numbers.positive + origin.numbers.negative;
  const int64_t most = nan > 0 ? nan : infinite;
  const proto::Instruction& instruction = plan.programs(origin.program).instructions(origin.instruction);
  std::string text = absl::StrCat(most, " of ", origin.elements, " elements");
  if (instruction.out_size() > 1) absl::StrAppend(&text, " of result ", origin.output + 1);
  absl::StrAppend(&text, most == 1 ? " is " : " are ", nan > 0 ? "NaN" : "infinite");
  if (nan > 0 && infinite > 0) absl::StrAppend(&text, " and ", infinite, " infinite");
  absl::StrAppend(&text, ", first at ", origin.numbers.first);
  return text;
}

// Of an origin and its causes, the earliest first.
std::string ChainText(const proto::Plan& plan, const std::vector<NanOrigin>& origins, int index) {
  const NanOrigin& origin = origins[static_cast<size_t>(index)];
  const std::string here = absl::StrCat(PlaceText(plan, origin), ": ", NumbersText(plan, origin));
  if (origin.kind == NanOrigin::Kind::kReceived)
    return absl::StrCat(here, "; what the ranks brought was finite");
  if (origin.cause < 0) return absl::StrCat(here, "; its inputs were finite");
  const NanOrigin& cause = origins[static_cast<size_t>(origin.cause)];
  if (cause.kind == NanOrigin::Kind::kState)
    return absl::StrCat(here, "; ", cause.state, " was not finite before");
  return absl::StrCat(ChainText(plan, origins, origin.cause), "; then ", here);
}

// At most `bytes` of it, which ends with dots where it was cut, and with a whole letter before them.
std::string CutText(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes - std::strlen(kCut);
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + kCut;
}

// Which finding comes first.
auto Order(const NanFinding& finding) {
  return std::make_tuple(finding.kind, finding.micro_step, finding.instruction);
}

}  // namespace

NanFinding FindingOf(const proto::Plan& plan, const NanTrace& trace) {
  const int reached = trace.Reached();
  if (reached < 0) return {.kind = trace.EndsFinite() ? NanFinding::Kind::kNothing : NanFinding::Kind::kLost};
  const std::vector<NanOrigin>& origins = trace.origins();
  if (origins[static_cast<size_t>(reached)].kind == NanOrigin::Kind::kState)
    return {.kind = NanFinding::Kind::kOwn,
            .text = absl::StrCat(origins[static_cast<size_t>(reached)].state, " was not finite before")};
  // By what has got into the loss or a gradient: a cause may be a mask, which was there long before.
  NanFinding finding = {.kind = NanFinding::Kind::kOwn,
                        .micro_step = origins[static_cast<size_t>(reached)].micro_step,
                        .instruction = origins[static_cast<size_t>(reached)].instruction,
                        .text = ChainText(plan, origins, reached)};
  for (int i = reached; i >= 0; i = origins[static_cast<size_t>(i)].cause)
    if (origins[static_cast<size_t>(i)].kind == NanOrigin::Kind::kReceived)
      finding.kind = NanFinding::Kind::kReceived;
  return finding;
}

std::string EarliestFinding(const std::vector<NanFinding>& by_rank) {
  const auto first =
      std::min_element(by_rank.begin(), by_rank.end(),
                       [](const NanFinding& a, const NanFinding& b) { return Order(a) < Order(b); });
  if (first->kind == NanFinding::Kind::kNothing)
    return "replayed it is finite: a kernel that does not repeat itself, or a fault of the hardware";
  if (first->kind == NanFinding::Kind::kLost)
    return "replayed it is not finite either, and nothing shows where that began";
  std::vector<int> ranks;
  for (size_t rank = 0; rank < by_rank.size(); ++rank)
    if (Order(by_rank[rank]) == Order(*first)) ranks.push_back(static_cast<int>(rank));
  return by_rank.size() == 1 ? first->text : absl::StrCat(RanksText(ranks), ", ", first->text);
}

absl::StatusOr<std::vector<NanFinding>> GatherFindings(const NanFinding& own, Communicator* world) {
  if (world == nullptr) return std::vector<NanFinding>{own};
  Record record = {.kind = own.kind, .micro_step = own.micro_step, .instruction = own.instruction};
  const std::string text = CutText(own.text, sizeof(record.text));
  record.length = static_cast<int32_t>(text.size());
  std::memcpy(record.text, text.data(), text.size());
  std::vector<Record> records(static_cast<size_t>(world->size()));
  FT_RETURN_IF_ERROR(world->AllGather(&record, records.data(), sizeof(record), {.name = "find_nan"}));
  std::vector<NanFinding> findings;
  for (const Record& one : records)
    findings.push_back({.kind = one.kind,
                        .micro_step = one.micro_step,
                        .instruction = one.instruction,
                        .text = std::string(one.text, static_cast<size_t>(one.length))});
  return findings;
}

}  // namespace ft
