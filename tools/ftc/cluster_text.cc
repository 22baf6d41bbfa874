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

std::string PlaceText(int64_t rows, bool columns, const ft::ClusterBody& body) {
  if (columns) return fmt::format("[{}, {}]", rows, body.columns);
  return rows == 1 && body.rows != 1 ? "once" : fmt::format("[{}]", rows);
}

int64_t BytesOf(const ft::ClusterBody& body, ft::DType dtype, int64_t rows, bool columns) {
  return body.Elements(rows, columns) * static_cast<int64_t>(ft::SizeOf(dtype));
}

void OpText(Out out, const ft::proto::Cluster::Op& op, size_t value, int levels) {
  fmt::format_to(out, "  %{} = {}", value, op.name());
  for (const uint32_t operand : op.operands()) fmt::format_to(out, " %{}", operand);
  for (const double parameter : op.parameters()) fmt::format_to(out, " {}", parameter);
  fmt::format_to(out, " : {}", ft::Name(static_cast<ft::DType>(op.dtype())));
  if (levels > 0) fmt::format_to(out, "  # after {} pass{} over the row", levels, levels == 1 ? "" : "es");
  fmt::format_to(out, "\n");
}

void ClusterText(Out out, const ft::proto::Cluster& cluster, const ft::ClusterBody& body, int number,
                 int runs) {
  int64_t read = 0, written = 0;
  for (const ft::ClusterBody::Input& input : body.inputs)
    read += BytesOf(body, input.dtype, input.rows, input.columns);
  for (const ft::ClusterBody::Output& output : body.outputs)
    written += BytesOf(body, output.dtype, output.over_rows ? 1 : body.rows, output.columns);
  fmt::format_to(out, "cluster {}: {} rows of {}, run by {} instruction{}; reads {} B, writes {} B", number,
                 body.rows, body.columns, runs, runs == 1 ? "" : "s", read, written);
  if (body.PartialBytes() > 0) fmt::format_to(out, ", scratch {} B", body.PartialBytes());
  fmt::format_to(out, "\n");
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ft::ClusterBody::Input& input = body.inputs[i];
    fmt::format_to(out, "  %{} = input {} {}\n", i, ft::Name(input.dtype),
                   PlaceText(input.rows, input.columns, body));
  }
  const std::vector<int> levels = ft::LevelsOf(body);
  for (size_t i = 0; i < body.ops.size(); ++i)
    OpText(out, cluster.ops(static_cast<int>(i)), body.inputs.size() + i, levels[body.inputs.size() + i]);
  for (const ft::proto::Cluster::Output& output : cluster.outputs()) {
    const bool over_rows = !output.over_rows().empty();
    fmt::format_to(out, "  output %{}{}{} : {} {}\n", output.value(), over_rows ? " over rows: " : "",
                   output.over_rows(), ft::Name(static_cast<ft::DType>(output.dtype())),
                   PlaceText(over_rows ? 1 : body.rows, output.columns(), body));
  }
  for (const ft::proto::Cluster::Code& code : cluster.codes())
    fmt::format_to(out, "  code {}: {} B\n", code.target(), code.code().size());
}

}  // namespace

absl::StatusOr<std::string> KernelsText(const ft::proto::Plan& plan) {
  FT_ASSIGN_OR_RETURN(const auto clusters, ft::ClustersOf(plan));
  std::map<uint32_t, int> runs;  // by number + 1
  for (const ft::proto::Program& program : plan.programs())
    for (const ft::proto::Instruction& instruction : program.instructions())
      ++runs[instruction.cluster_plus_one()];
  std::string text;
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (i > 0) text += "\n";
    const int number = static_cast<int>(i);
    ClusterText(Out(text), plan.clusters(number), clusters[i]->body, number, runs[number + 1]);
  }
  return text.empty() ? "no clusters: the model has no primitives beside each other\n" : text;
}

}  // namespace ftc
