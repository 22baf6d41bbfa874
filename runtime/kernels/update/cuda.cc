// update: the step of an optimizer, by the code of its body where the plan has some and the platform runs it,
// else by the walker. update_scalars: the numbers that it reads.
#include "runtime/kernels/cluster/cuda.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/backends/cuda/register.h"
#include "runtime/base/flat_layout.h"
#include "runtime/kernels/update/cuda_device.h"
#include "runtime/kernels/update/operands.h"

namespace ft::cuda {
namespace {

// launch(addresses, elements, stream) runs the body over whole blocks.
template <typename Run>
KernelOr MakeNearest(const UpdateOperands& o, Run run) {
  std::vector<std::pair<std::vector<void*>, int64_t>> calls;
  for (const UpdateRun& part : o.runs)
    calls.emplace_back(o.Addresses(part.begin, part.decays), part.end - part.begin);
  return MakeKernel([calls = std::move(calls), run](StreamHandle stream) {
    for (const auto& [addresses, elements] : calls) {
      if (const int error = run(addresses, elements, stream); error != 0) return error;
    }
    return 0;
  });
}

// As much of a parameter as the workspace has room for in f32, then rounded.
template <typename Run>
KernelOr MakeStochastic(const KernelContext& context, const UpdateOperands& o, Run run) {
  struct Call {
    std::vector<void*> addresses;
    int64_t elements;
    RoundArgs rounding;
  };
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, kRoundingElements * int64_t{sizeof(float)}));
  std::vector<Call> calls;
  for (const UpdateRun& part : o.runs) {
    for (int64_t at = part.begin; at < part.end; at += kRoundingElements) {
      const int64_t n = std::min(kRoundingElements, part.end - at);
      Call& call = calls.emplace_back();
      call.addresses = o.Addresses(at, part.decays);
      call.addresses[o.body.inputs.size()] = context.operands.workspace.data;
      call.elements = (n + kBlockElements - 1) / kBlockElements * kBlockElements;
      call.rounding = {.values = context.operands.workspace.as<float>(),
                       .bf16 = o.out[0].as<uint16_t>() + at,
                       .elements = n,
                       .first = part.first + at - part.begin,
                       .stream = part.stream,
                       .rng = o.rng,
                       .step = o.step};
    }
  }
  return MakeKernel([calls = std::move(calls), run](StreamHandle stream) {
    for (const Call& call : calls) {
      if (const int error = run(call.addresses, call.elements, stream); error != 0) return error;
      if (const int error = RoundStochastically(call.rounding, stream); error != 0) return error;
    }
    return 0;
  });
}

template <typename Run>
KernelOr Make(const KernelContext& context, const UpdateOperands& o, Run run) {
  return o.rng == nullptr ? MakeNearest(o, run) : MakeStochastic(context, o, run);
}

// Whether a grid of more blocks of threads is as many blocks of elements: threads have 8 each (ptx_kernel.h).
bool RunsBlocks(const ft::Cluster& cluster) {
  return std::any_of(cluster.codes.begin(), cluster.codes.end(), [](const ClusterCode& code) {
    return code.target == ClusterCode::kPtx && code.kernel_launch.blocks == 1 &&
           code.kernel_launch.threads * 8 == kBlockElements;
  });
}

KernelOr MakeUpdate(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const UpdateOperands o, ReadUpdateOperands(context.operands, context.attributes));
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<const LoadedCode> code, CodeOf(context));
  if (code != nullptr && !RunsBlocks(*context.attributes.cluster()))
    return absl::InvalidArgumentError(
        "its code for GPUs does not run a block of elements for each block of threads");
  if (code != nullptr)
    return Make(context, o,
                [code](const std::vector<void*>& addresses, int64_t elements, StreamHandle stream) {
                  return code->Launch(addresses, elements / kBlockElements, stream);
                });
  // The walker is given a body over as many rows as a call has.
  return Make(context, o, [o](const std::vector<void*>& addresses, int64_t elements, StreamHandle stream) {
    return Cluster(ClusterArgsOf({o.BodyOver(elements), addresses}), stream);
  });
}

KernelOr MakeUpdateScalars(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ScalarOperands o, ReadScalarOperands(context.operands, context.attributes));
  const UpdateScalarsArgs args = {o.coefficient, o.lr, o.step, o.inverse_ranks, o.scalars};
  return MakeKernel(
      [formulas = o.formulas, args](StreamHandle stream) { return UpdateScalars(formulas, args, stream); });
}

}  // namespace

void RegisterUpdate(KernelTable& table) {
  table.Add("update", MakeUpdate);
  table.Add("update_scalars", MakeUpdateScalars);
}

}  // namespace ft::cuda
