#include "runtime/plan/plan_clusters.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

using Op = ClusterBody::Op;
using ClusterPlace = ClusterBody::Place;

constexpr uint64_t kMostExtent = uint64_t{1} << 62;
constexpr std::string_view kReductions[] = {"sum", "max", "min"};  // by ReductionKind
constexpr std::string_view kReduce = "reduce_";
constexpr std::string_view kRandomBits = "random_bits";
constexpr std::string_view kIota = "iota";

std::string_view NameOf(ReductionKind kind) { return kReductions[static_cast<int>(kind)]; }

std::string NameOf(const Op& op) {
  switch (op.kind) {
    case Op::Kind::kElementwise:
      return std::string(RowOf(op.function).name);
    case Op::Kind::kConvert:
      return "convert";
    case Op::Kind::kFill:
      return "fill";
    case Op::Kind::kRandomBits:
      return std::string(kRandomBits);
    case Op::Kind::kIota:
      return std::string(kIota);
    case Op::Kind::kReduce:
      return std::string(kReduce) + std::string(NameOf(op.reduction));
  }
  return "";
}

std::optional<ReductionKind> ReductionOf(std::string_view name) {
  const auto* found = std::find(std::begin(kReductions), std::end(kReductions), name);
  if (found == std::end(kReductions)) return std::nullopt;
  return static_cast<ReductionKind>(found - std::begin(kReductions));
}

// Sets kind, and function or reduction.
absl::Status SetName(std::string_view name, Op& op) {
  if (name.substr(0, kReduce.size()) == kReduce) {
    op.kind = Op::Kind::kReduce;
    const std::optional<ReductionKind> kind = ReductionOf(name.substr(kReduce.size()));
    if (kind.has_value()) op.reduction = *kind;
    return kind.has_value() ? absl::OkStatus() : absl::InvalidArgumentError("unknown reduction");
  }
  if (name == kRandomBits || name == kIota) {
    op.kind = name == kIota ? Op::Kind::kIota : Op::Kind::kRandomBits;
    return absl::OkStatus();
  }
  if (name == "convert" || name == "fill") {
    op.kind = name == "fill" ? Op::Kind::kFill : Op::Kind::kConvert;
    return absl::OkStatus();
  }
  const auto* row = std::find_if(std::begin(kElementwiseRows), std::end(kElementwiseRows),
                                 [&](const ElementwiseRow& candidate) { return candidate.name == name; });
  if (row == std::end(kElementwiseRows)) return absl::InvalidArgumentError("unknown op of a cluster");
  op.function = row->kind;
  return absl::OkStatus();
}

absl::StatusOr<DType> TypeOf(proto::DType dtype) {
  if (!proto::DType_IsValid(dtype)) return absl::InvalidArgumentError("unknown type in a cluster");
  return static_cast<DType>(dtype);
}

int64_t BoundedExtent(uint64_t number) { return static_cast<int64_t>(std::min(number, kMostExtent)); }

ClusterPlace PlaceOf(const proto::Cluster::Place& from) {
  ClusterPlace place = {.begin = BoundedExtent(from.begin()),
                        .column_stride = BoundedExtent(from.column_stride())};
  for (const proto::Cluster::Place::Step& step : from.steps())
    place.steps.push_back(
        {BoundedExtent(step.every()), BoundedExtent(step.extent()), BoundedExtent(step.stride())});
  return place;
}

void SetPlace(const ClusterPlace& place, proto::Cluster::Place& to) {
  to.set_begin(place.begin);
  to.set_column_stride(place.column_stride);
  for (const ClusterPlace::Step& from : place.steps) {
    proto::Cluster::Place::Step& step = *to.add_steps();
    step.set_every(from.every);
    step.set_extent(from.extent);
    step.set_stride(from.stride);
  }
}

absl::StatusOr<ClusterBody::Buffer> BufferOf(const proto::Cluster::Buffer& from) {
  FT_ASSIGN_OR_RETURN(const DType dtype, TypeOf(from.dtype()));
  return ClusterBody::Buffer{dtype, BoundedExtent(from.elements()), from.state()};
}

void SetBuffer(const ClusterBody::Buffer& buffer, proto::Cluster::Buffer& to) {
  to.set_dtype(static_cast<proto::DType>(buffer.dtype));
  to.set_elements(buffer.elements);
  to.set_state(buffer.state);
}

absl::StatusOr<Op> OpOf(const proto::Cluster::Op& from) {
  Op op;
  FT_RETURN_IF_ERROR(SetName(from.name(), op));
  FT_ASSIGN_OR_RETURN(op.dtype, TypeOf(from.dtype()));
  op.operands.assign(from.operands().begin(), from.operands().end());
  op.parameters.assign(from.parameters().begin(), from.parameters().end());
  op.draw = from.draw();
  op.elements = BoundedExtent(from.elements());
  op.place = PlaceOf(from.place());
  return op;
}

absl::StatusOr<ClusterBody::Output> OutputOf(const proto::Cluster::Output& from) {
  ClusterBody::Output output = {
      .value = from.value(), .result = from.result(), .place = PlaceOf(from.place())};
  output.acc = int64_t{from.acc_plus_one()} - 1;
  output.over_rows = !from.over_rows().empty();
  if (!output.over_rows) return output;
  const std::optional<ReductionKind> kind = ReductionOf(from.over_rows());
  if (!kind.has_value()) return absl::InvalidArgumentError("unknown reduction over rows");
  output.reduction = *kind;
  return output;
}

ClusterCode::Launch LaunchOf(const proto::Cluster::Code::Launch& from) {
  return {from.blocks(), from.threads()};
}

absl::StatusOr<std::vector<ClusterCode>> CodesOf(const proto::Cluster& cluster) {
  constexpr uint64_t kMostPartialBytes = uint64_t{1} << 40;
  std::vector<ClusterCode> codes;
  for (const proto::Cluster::Code& from : cluster.codes()) {
    const auto refusal = [&](const char* why) {
      return absl::InvalidArgumentError(absl::StrCat("its code for ", from.target(), " ", why));
    };
    if (from.kernel() >= from.code().size() || from.combine() >= from.code().size())
      return refusal("begins behind its end");
    if (from.target() == ClusterCode::kPtx && from.kernel_launch().blocks() == 0)
      return refusal("is not launched");
    if (from.partial_bytes() > kMostPartialBytes) return refusal("wants too much scratch");
    codes.push_back({.target = from.target(),
                     .bytes = from.code(),
                     .kernel = from.kernel(),
                     .combine = from.combine(),
                     .kernel_launch = LaunchOf(from.kernel_launch()),
                     .combine_launch = LaunchOf(from.combine_launch()),
                     .partial_bytes = static_cast<int64_t>(from.partial_bytes())});
  }
  return codes;
}

}  // namespace

bool RunsCluster(std::string_view kernel) {
  return kernel == kClusterKernel || kernel == kUpdateKernel || kernel == "matmul_gelu" ||
         kernel == "matmul_gelu_grad" || kernel == "matmul_bias_grad";
}

proto::Cluster ToProto(const ClusterBody& body) {
  proto::Cluster cluster;
  cluster.set_rows(body.rows);
  cluster.set_columns(body.columns);
  cluster.set_last_columns(body.last_columns);
  for (const ClusterBody::Buffer& input : body.inputs) SetBuffer(input, *cluster.add_inputs());
  for (const ClusterBody::Buffer& result : body.results) SetBuffer(result, *cluster.add_results());
  for (const ClusterBody::Read& read : body.reads) {
    proto::Cluster::Read& to = *cluster.add_reads();
    to.set_input(read.input);
    SetPlace(read.place, *to.mutable_place());
  }
  for (const Op& op : body.ops) {
    proto::Cluster::Op& to = *cluster.add_ops();
    to.set_name(NameOf(op));
    to.mutable_operands()->Assign(op.operands.begin(), op.operands.end());
    to.mutable_parameters()->Assign(op.parameters.begin(), op.parameters.end());
    to.set_dtype(static_cast<proto::DType>(op.dtype));
    if (op.kind != Op::Kind::kRandomBits && op.kind != Op::Kind::kIota) continue;
    to.set_draw(op.draw);
    to.set_elements(op.elements);
    SetPlace(op.place, *to.mutable_place());
  }
  for (const ClusterBody::Output& output : body.outputs) {
    proto::Cluster::Output& to = *cluster.add_outputs();
    to.set_value(output.value);
    to.set_result(output.result);
    SetPlace(output.place, *to.mutable_place());
    if (output.over_rows) to.set_over_rows(std::string(NameOf(output.reduction)));
    to.set_acc_plus_one(static_cast<uint32_t>(output.acc + 1));
  }
  return cluster;
}

absl::StatusOr<ClusterBody> ClusterBodyOf(const proto::Cluster& cluster) {
  ClusterBody body;
  if (std::max({cluster.rows(), cluster.columns(), cluster.last_columns()}) > kMostExtent)
    return absl::InvalidArgumentError("its space is too large");
  body.rows = BoundedExtent(cluster.rows());
  body.columns = BoundedExtent(cluster.columns());
  body.last_columns = BoundedExtent(cluster.last_columns());
  for (const proto::Cluster::Buffer& from : cluster.inputs()) {
    FT_ASSIGN_OR_RETURN(const ClusterBody::Buffer input, BufferOf(from));
    body.inputs.push_back(input);
  }
  for (const proto::Cluster::Buffer& from : cluster.results()) {
    FT_ASSIGN_OR_RETURN(const ClusterBody::Buffer result, BufferOf(from));
    body.results.push_back(result);
  }
  for (const proto::Cluster::Read& from : cluster.reads())
    body.reads.push_back({from.input(), PlaceOf(from.place())});
  for (const proto::Cluster::Op& from : cluster.ops()) {
    FT_ASSIGN_OR_RETURN(Op op, OpOf(from));
    body.ops.push_back(std::move(op));
  }
  for (const proto::Cluster::Output& from : cluster.outputs()) {
    FT_ASSIGN_OR_RETURN(ClusterBody::Output output, OutputOf(from));
    body.outputs.push_back(std::move(output));
  }
  FT_RETURN_IF_ERROR(CheckClusterBody(body));
  return body;
}

absl::StatusOr<std::vector<std::shared_ptr<Cluster>>> ClustersOf(const proto::Plan& plan) {
  std::vector<std::shared_ptr<Cluster>> clusters;
  clusters.reserve(plan.clusters_size());
  for (const proto::Cluster& from : plan.clusters()) {
    absl::StatusOr<ClusterBody> body = ClusterBodyOf(from);
    absl::StatusOr<std::vector<ClusterCode>> codes = CodesOf(from);
    const absl::Status status = body.ok() ? codes.status() : body.status();
    if (!status.ok())
      return absl::InvalidArgumentError(absl::StrCat("cluster ", clusters.size(), ": ", status.message()));
    clusters.push_back(std::make_shared<Cluster>(Cluster{*std::move(body), *std::move(codes), nullptr}));
  }
  return clusters;
}

}  // namespace ft
