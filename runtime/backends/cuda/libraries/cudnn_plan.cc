// How a graph becomes a plan, and what a run of the plan is given.
#include <algorithm>

#include "fmt/format.h"
#include "runtime/backends/cuda/libraries/cudnn_graph.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// Of the configurations that a heuristic proposes, as many as are tried.
constexpr int64_t kMostProposals = 16;

}  // namespace

absl::Status CudnnGraph::FinishGraph(const CudnnTarget& target) {
  FT_RETURN_IF_ERROR(status_);
  if (graph_.has_value()) return absl::OkStatus();
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.get());
  FT_ASSIGN_OR_RETURN(auto graph, CudnnDescriptor::Create(api_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  FT_RETURN_IF_ERROR(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               static_cast<int64_t>(operations.size()), operations.data()));
  if (target.handle != nullptr) {
    FT_RETURN_IF_ERROR(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle));
  }
  FT_RETURN_IF_ERROR(graph.Finalize("graph"));
  graph_ = std::move(graph);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CudnnDescriptor>> CudnnGraph::Propose(const CudnnTarget& target,
                                                                 cudnnBackendHeurMode_t mode) {
  FT_ASSIGN_OR_RETURN(auto heuristics, CudnnDescriptor::Create(api_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  FT_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_));
  FT_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
  if (target.device != nullptr) {
    FT_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device));
  }
  FT_RETURN_IF_ERROR(heuristics.Finalize("heuristics"));
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < kMostProposals; ++i) {
    FT_ASSIGN_OR_RETURN(auto config, CudnnDescriptor::Create(api_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(config.get());
    configs.push_back(std::move(config));
  }
  FT_ASSIGN_OR_RETURN(const int64_t count,
                      heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     kMostProposals, raw.data()));
  configs.erase(configs.begin() + std::min(count, kMostProposals), configs.end());
  return configs;
}

absl::StatusOr<CudnnDescriptor> CudnnGraph::Configure(const CudnnTarget& target, const CudnnEngine& choice) {
  FT_ASSIGN_OR_RETURN(auto engine, CudnnDescriptor::Create(api_, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  FT_RETURN_IF_ERROR(engine.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_));
  FT_RETURN_IF_ERROR(engine.Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.id));
  if (target.device != nullptr) FT_RETURN_IF_ERROR(engine.Set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.device));
  FT_RETURN_IF_ERROR(engine.Finalize("engine"));
  std::vector<CudnnDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const auto& [type, value] : choice.knobs) {
    FT_ASSIGN_OR_RETURN(auto knob, CudnnDescriptor::Create(api_, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    FT_RETURN_IF_ERROR(knob.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type));
    FT_RETURN_IF_ERROR(knob.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value));
    FT_RETURN_IF_ERROR(knob.Finalize("knob"));
    raw.push_back(knob.get());
    knobs.push_back(std::move(knob));
  }
  FT_ASSIGN_OR_RETURN(auto config, CudnnDescriptor::Create(api_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  FT_RETURN_IF_ERROR(config.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
  FT_RETURN_IF_ERROR(config.Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                static_cast<int64_t>(raw.size()), raw.data()));
  FT_RETURN_IF_ERROR(config.Finalize("engine configuration"));
  parts_.push_back(std::move(engine));
  for (CudnnDescriptor& knob : knobs) parts_.push_back(std::move(knob));
  return config;
}

absl::StatusOr<CudnnPlan> CudnnGraph::PlanOf(const CudnnTarget& target, CudnnDescriptor config,
                                             uint64_t workspace_bytes) {
  FT_ASSIGN_OR_RETURN(auto plan, CudnnDescriptor::Create(api_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  if (target.handle != nullptr) {
    FT_RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle));
  } else {
    FT_RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device));
  }
  FT_RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
  FT_RETURN_IF_ERROR(plan.Finalize("plan"));
  int64_t needed = 0;
  FT_RETURN_IF_ERROR(
      plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &needed).status());
  if (needed > static_cast<int64_t>(workspace_bytes)) {
    return absl::UnimplementedError(
        fmt::format("needs {} bytes of workspace, there are {}", needed, workspace_bytes));
  }
  FT_ASSIGN_OR_RETURN(auto engine, CudnnDescriptor::Create(api_, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t id = -1;
  FT_RETURN_IF_ERROR(
      config.Get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw).status());
  FT_RETURN_IF_ERROR(engine.Get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &id).status());
  CudnnPlan result(api_, std::move(plan), static_cast<uint64_t>(needed), fmt::format("engine {}", id));
  result.scalars_ = std::make_shared<const std::vector<std::pair<TensorId, float>>>(scalars_);
  result.parts_.push_back(std::move(config));
  GiveParts(result);
  return result;
}

void CudnnGraph::GiveParts(CudnnPlan& plan) {
  plan.parts_.push_back(std::move(*graph_));
  graph_.reset();
  for (std::vector<CudnnDescriptor>* parts : {&operations_, &parts_}) {
    for (CudnnDescriptor& part : *parts) plan.parts_.push_back(std::move(part));
    parts->clear();
  }
  for (TensorInfo& tensor : tensors_) plan.parts_.push_back(std::move(tensor.descriptor));
  tensors_.clear();
}

absl::StatusOr<CudnnPlan> CudnnGraph::Plan(const CudnnTarget& target, uint64_t workspace_bytes,
                                           absl::Span<const CudnnEngine> engines, bool heuristics) {
  FT_RETURN_IF_ERROR(FinishGraph(target));
  absl::Status refusal;
  const auto try_config = [&](absl::StatusOr<CudnnDescriptor> config) -> absl::StatusOr<CudnnPlan> {
    if (!config.ok()) return config.status();
    return PlanOf(target, *std::move(config), workspace_bytes);
  };
  for (const CudnnEngine& engine : engines) {
    absl::StatusOr<CudnnPlan> plan = try_config(Configure(target, engine));
    if (plan.ok()) return plan;
    refusal.Update(plan.status());
  }
  if (!heuristics) return refusal;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    absl::StatusOr<std::vector<CudnnDescriptor>> configs = Propose(target, mode);
    refusal.Update(configs.status());
    if (!configs.ok()) continue;
    if (configs->empty()) {
      refusal.Update(absl::UnimplementedError(fmt::format("no engine takes it ({})", api_.LastReason())));
    }
    for (CudnnDescriptor& config : *configs) {
      absl::StatusOr<CudnnPlan> plan = try_config(std::move(config));
      if (plan.ok()) return plan;
      refusal.Update(plan.status());
    }
  }
  return refusal;
}

absl::StatusOr<CudnnDescriptor> CudnnPlan::Bind(absl::Span<const std::pair<TensorId, const void*>> tensors,
                                                void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<const void*> addresses;
  for (const auto& [id, address] : tensors) {
    ids.push_back(id);
    addresses.push_back(address);
  }
  for (const auto& [id, value] : *scalars_) {
    ids.push_back(id);
    addresses.push_back(&value);
  }
  FT_ASSIGN_OR_RETURN(auto pack, CudnnDescriptor::Create(*api_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  const int64_t count = static_cast<int64_t>(ids.size());
  FT_RETURN_IF_ERROR(pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data()));
  FT_RETURN_IF_ERROR(
      pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses.data()));
  FT_RETURN_IF_ERROR(pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
  FT_RETURN_IF_ERROR(pack.Finalize("variant pack"));
  return pack;
}

}  // namespace ft::cuda
