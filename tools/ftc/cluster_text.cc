// ftc dump --kernels.
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_clusters.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

using Out = std::back_insert_iterator<std::string>;

// "[64, 768]" for whole rows, "[64]" for one element a row, else strides: "begin 8, row / 4 % 16 * 96, column
// * 1".
std::string PlaceText(const ft::ClusterBody::Place& place, const ft::ClusterBody& body) {
  if (place == body.Whole()) return fmt::format("[{}, {}]", body.rows, body.columns);
  if (place == ft::ClusterBody::Place{}) return "once";
  if (place == ft::ClusterBody::Place{.steps = {{1, body.rows, 1}}}) return fmt::format("[{}]", body.rows);
  if (place == ft::ClusterBody::Place{.column_stride = 1}) return fmt::format("[{}]", body.columns);
  std::vector<std::string> parts;
  if (place.begin != 0) parts.push_back(fmt::format("from {}", place.begin));
  for (const ft::ClusterBody::Place::Step& step : place.steps)
    parts.push_back(fmt::format(
        "row{}{} * {}", step.every == 1 ? "" : fmt::format(" / {}", step.every),
        step.every * step.extent >= body.rows ? "" : fmt::format(" % {}", step.extent), step.stride));
  if (place.column_stride != 0) parts.push_back(fmt::format("column * {}", place.column_stride));
  return fmt::format("at {}", fmt::join(parts, ", "));
}

void OpText(Out out, const ft::proto::Cluster::Op& op, const ft::ClusterBody& body, size_t value,
            int levels) {
  const ft::ClusterBody::Op& known = body.ops[value - body.reads.size()];
  fmt::format_to(out, "  %{} = {}", value, op.name());
  const bool draws = known.kind == ft::ClusterOpKind::kRandomBits;
  for (const uint32_t operand : op.operands()) fmt::format_to(out, " {}{}", draws ? "input " : "%", operand);
  for (const double parameter : op.parameters()) fmt::format_to(out, " {}", parameter);
  if (draws) fmt::format_to(out, " draw {}", known.draw);
  if (draws || known.kind == ft::ClusterOpKind::kIota)
    fmt::format_to(out, " {}", PlaceText(known.place, body));
  fmt::format_to(out, " : {}", ft::Name(static_cast<ft::DType>(op.dtype())));
  if (levels > 0) fmt::format_to(out, "  # after {} pass{} over the row", levels, levels == 1 ? "" : "es");
  fmt::format_to(out, "\n");
}

// That a read of such places is of: each element once.
int64_t ElementsAt(const ft::ClusterBody::Place& place, const ft::ClusterBody& body) {
  if (place.column_stride == 1 && place.steps == body.Whole().steps) return body.elements();
  int64_t elements = place.column_stride == 0 ? 1 : body.columns;
  for (const ft::ClusterBody::Place::Step& step : place.steps) elements *= step.extent;
  return elements;
}

// An input may be read in parts.
int64_t BytesRead(const ft::ClusterBody& body) {
  std::vector<int64_t> elements(body.inputs.size());
  for (const ft::ClusterBody::Read& read : body.reads) elements[read.input] += ElementsAt(read.place, body);
  for (const ft::ClusterBody::Output& output : body.outputs)
    if (output.acc >= 0) elements[static_cast<size_t>(output.acc)] += body.columns;
  int64_t bytes = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const ft::ClusterBody::Buffer& input = body.inputs[i];
    const int64_t read = input.state ? input.elements : std::min(elements[i], input.elements);
    bytes += read * static_cast<int64_t>(ft::SizeOf(input.dtype));
  }
  return bytes;
}

int64_t BytesWritten(const ft::ClusterBody& body) {
  int64_t bytes = 0;
  for (const ft::ClusterBody::Buffer& result : body.results)
    bytes += result.elements * static_cast<int64_t>(ft::SizeOf(result.dtype));
  return bytes;
}

using OfPtx = std::function<std::string(const std::string& ptx)>;

void ClusterText(Out out, const ft::proto::Cluster& cluster, const ft::ClusterBody& body, int number,
                 int runs, const OfPtx& of_ptx) {
  fmt::format_to(out, "cluster {}: {} rows of {}, run by {} instruction{}; reads {} B, writes {} B", number,
                 body.rows, body.columns, runs, runs == 1 ? "" : "s", BytesRead(body), BytesWritten(body));
  if (body.PartialBytes() > 0) fmt::format_to(out, ", scratch {} B", body.PartialBytes());
  fmt::format_to(out, "\n");
  for (size_t i = 0; i < body.reads.size(); ++i)
    fmt::format_to(out, "  %{} = input {} : {} {}\n", i, body.reads[i].input, ft::Name(body.dtype(i)),
                   PlaceText(body.reads[i].place, body));
  const std::vector<int> levels = ft::LevelsOf(body);
  for (size_t i = 0; i < body.ops.size(); ++i)
    OpText(out, cluster.ops(static_cast<int>(i)), body, body.reads.size() + i, levels[body.reads.size() + i]);
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const ft::proto::Cluster::Output& output = cluster.outputs(static_cast<int>(i));
    const ft::ClusterBody::Output& known = body.outputs[i];
    fmt::format_to(out, "  result {} = {}%{}{}{} : {} {}\n", output.result(),
                   known.acc < 0 ? "" : fmt::format("input {} + ", known.acc), output.value(),
                   known.over_rows ? " over rows: " : "", output.over_rows(),
                   ft::Name(body.results[known.result].dtype), PlaceText(known.place, body));
  }
  for (const ft::proto::Cluster::Code& code : cluster.codes())
    fmt::format_to(out, "  code {}: {} B{}\n", code.target(), code.code().size(),
                   code.target() == ft::ClusterCode::kPtx ? of_ptx(code.code()) : "");
}

}  // namespace

absl::StatusOr<std::string> KernelsText(const ft::proto::Plan& plan, const OfPtx& of_ptx) {
  FT_ASSIGN_OR_RETURN(const auto clusters, ft::ClustersOf(plan));
  std::map<uint32_t, int> runs;  // by number + 1
  for (const ft::proto::Program& program : plan.programs())
    for (const ft::proto::Instruction& instruction : program.instructions())
      ++runs[instruction.cluster_plus_one()];
  std::string text;
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (i > 0) text += "\n";
    const int number = static_cast<int>(i);
    ClusterText(Out(text), plan.clusters(number), clusters[i]->body, number, runs[number + 1], of_ptx);
  }
  return text.empty() ? "no clusters: the model has no primitives beside each other\n" : text;
}

}  // namespace ftc
