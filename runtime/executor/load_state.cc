#include "runtime/executor/load_state.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "fmt/format.h"
#include "runtime/base/convert_elements.h"
#include "runtime/base/first_failure.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"

namespace ft {
namespace {

constexpr size_t kLoadParts = 4;  // whose windows are 8 MiB each
constexpr uint64_t kStateChunkElements = uint64_t{2} << 20;

std::string ShapeOf(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", extent);
  return text.empty() ? "a scalar" : text;
}

absl::Status Another(const CheckpointReader& reader, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("the checkpoint '{}' is of another model or optimizer: {}", reader.folder(), why));
}

// Everything of the layout but the order of buffers is equal.
bool IsSameLayout(const StateLayout& a, const StateLayout& b) {
  return a.mesh == b.mesh && a.block_elements == b.block_elements && a.units == b.units &&
         a.parameters == b.parameters && a.buffers == b.buffers;
}

// Elements [begin, end) of a tensor of the checkpoint, on their way to where this rank holds them.
struct Transfer {
  uint32_t tensor = 0;  // its number there
  uint64_t begin = 0;
  uint64_t end = 0;
  const StateAtRest* to = nullptr;
  uint64_t element = 0;  // of the plan's unit, where they begin
};

class Loader {
 public:
  Loader(const Executor& executor, CheckpointReader& reader) : executor_(executor), reader_(reader) {}

  absl::Status Load(const Transfer& transfer) {
    const auto& [tensor, begin, end, to, element] = transfer;
    const DType dtype = reader_.dtype(tensor);
    const uint64_t count = end - begin;
    std::byte* const place = to->At(element);
    if (dtype == to->dtype && executor_.device().host_accessible())
      return reader_.Read(tensor, {begin, end}, place);
    read_.resize(count * SizeOf(dtype));
    FT_RETURN_IF_ERROR(reader_.Read(tensor, {begin, end}, read_.data()));
    return executor_.Write(place, InType(dtype, count, to->dtype), count * to->ElementBytes());
  }

 private:
  const std::byte* InType(DType dtype, uint64_t count, DType to) {
    if (dtype == to) return read_.data();
    rounded_.resize(count * SizeOf(to));
    ConvertElements(dtype, read_.data(), to, rounded_.data(), count);
    return rounded_.data();
  }

  const Executor& executor_;
  CheckpointReader& reader_;
  std::vector<std::byte> read_;
  std::vector<std::byte> rounded_;
};

// Until a part has failed.
void LoadPart(const Executor& executor, CheckpointReader& reader, absl::Span<const Transfer> transfers,
              FirstFailure& failure) {
  Loader loader(executor, reader);
  for (const Transfer& transfer : transfers) {
    if (failure.failed()) return;
    const absl::Status status = loader.Load(transfer);
    if (!status.ok()) failure.Set(status).IgnoreError();
  }
}

// Cuts transfers into kLoadParts parts of about as many elements each.
std::vector<absl::Span<const Transfer>> Parts(absl::Span<const Transfer> transfers) {
  uint64_t elements = 0, until = 0;
  for (const Transfer& transfer : transfers) elements += transfer.end - transfer.begin;
  std::vector<absl::Span<const Transfer>> parts;
  size_t begin = 0;
  for (size_t i = 0; i < transfers.size(); ++i) {
    until += transfers[i].end - transfers[i].begin;
    const bool is_full = until >= (elements + kLoadParts - 1) / kLoadParts * (parts.size() + 1);
    if (!is_full && i + 1 < transfers.size()) continue;
    parts.push_back(transfers.subspan(begin, i + 1 - begin));
    begin = i + 1;
  }
  return parts;
}

// All parts at once, so that some read while others check and copy.
absl::Status LoadInParts(const Executor& executor, CheckpointReader& reader,
                         absl::Span<const Transfer> transfers) {
  std::deque<std::unique_ptr<CheckpointReader>> readers;
  std::vector<std::thread> threads;
  FirstFailure failure;
  for (const absl::Span<const Transfer> part : Parts(transfers)) {
    absl::StatusOr<std::unique_ptr<CheckpointReader>> own = reader.Duplicate();
    if (!own.ok()) {
      failure.Set(own.status()).IgnoreError();
      break;
    }
    const auto load = [&, part, own = readers.emplace_back(*std::move(own)).get()] {
      LoadPart(executor, *own, part, failure);
    };
    absl::StatusOr<std::thread> thread = StartThread("to load a checkpoint", load);
    if (thread.ok()) {
      threads.push_back(*std::move(thread));
    } else {
      load();
    }
  }
  for (std::thread& thread : threads) thread.join();
  return failure.status();
}

absl::Status Clear(const Executor& executor, const StateAtRest& state) {
  const std::vector<std::byte> zeros(std::min(state.elements, kStateChunkElements) * state.ElementBytes());
  for (uint64_t at = 0; at < state.elements; at += kStateChunkElements) {
    const uint64_t count = std::min(kStateChunkElements, state.elements - at);
    FT_RETURN_IF_ERROR(
        executor.Write(state.data + at * state.ElementBytes(), zeros.data(), count * state.ElementBytes()));
  }
  return absl::OkStatus();
}

// Every tensor of `state` is in the checkpoint.
absl::Status CheckHasAll(const StateLayout& state, const CheckpointReader& reader) {
  const FileLayout& saved = reader.layout();
  FT_ASSIGN_OR_RETURN(const FileLayout own, FileLayout::Create(state, saved.type()));
  for (const LogicalTensor& tensor : own.tensors()) {
    const int there = saved.FindTensor(tensor.name);
    if (there < 0) return Another(reader, fmt::format("it has no tensor '{}'", tensor.name));
    const auto number = static_cast<uint32_t>(there);
    if (saved.tensors()[number].shape != tensor.shape)
      return Another(reader, fmt::format("'{}' is {} there, and {} here", tensor.name,
                                         ShapeOf(saved.tensors()[number].shape), ShapeOf(tensor.shape)));
    const DType dtype = state.buffers[tensor.buffer].dtype;
    if (reader.dtype(number) != dtype && !(IsConvertible(reader.dtype(number)) && IsConvertible(dtype)))
      return Another(reader, fmt::format("'{}' is of type {} there, and {} here", tensor.name,
                                         Name(reader.dtype(number)), Name(dtype)));
  }
  return absl::OkStatus();
}

// Of the buffers that `counts` says, the checkpoint has no tensor that `state` does not have.
absl::Status CheckHasNoMore(const StateLayout& state, const CheckpointReader& reader,
                            absl::FunctionRef<bool(const StateBuffer&)> counts) {
  const FileLayout& saved = reader.layout();
  FT_ASSIGN_OR_RETURN(const FileLayout own, FileLayout::Create(state, saved.type()));
  for (const LogicalTensor& tensor : saved.tensors()) {
    if (counts(saved.state().buffers[tensor.buffer]) && own.FindTensor(tensor.name) < 0)
      return Another(reader, fmt::format("its tensor '{}' is not part of this one", tensor.name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSameState(const StateLayout& state, const CheckpointReader& reader) {
  const FileLayout& saved = reader.layout();
  if (saved.type() == CheckpointType::kLocal) {
    if (IsSameLayout(state, saved.state())) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("the checkpoint '{}' is of type local, for the same ranks, units and types only, and "
                    "these are others; "
                    "ftckpt convert makes one of type full or sharded",
                    reader.folder()));
  }
  FT_RETURN_IF_ERROR(CheckHasAll(state, reader));
  return CheckHasNoMore(state, reader, [](const StateBuffer&) { return true; });
}

absl::Status CheckSameWeights(const StateLayout& weights, const CheckpointReader& reader) {
  const StateLayout& saved = reader.layout().state();
  const bool has_units = saved.block_elements == weights.block_elements && saved.units == weights.units &&
                         saved.parameters == weights.parameters;
  if (reader.layout().type() == CheckpointType::kLocal && !has_units)
    return absl::InvalidArgumentError(
        fmt::format("the checkpoint '{}' is of type local, for the same units only, and these are others; "
                    "ftckpt convert makes one of type full or sharded",
                    reader.folder()));
  FT_RETURN_IF_ERROR(CheckHasAll(weights, reader));
  return CheckHasNoMore(weights, reader,
                        [](const StateBuffer& buffer) { return buffer.role == kWeightsRole; });
}

StateLayout WeightsOf(StateLayout state) {
  std::erase_if(state.buffers, [](const StateBuffer& buffer) { return buffer.role != kWeightsRole; });
  return state;
}

absl::Status LoadState(const proto::Plan& plan, const StateLayout& state, const Executor& executor,
                       CheckpointReader& reader) {
  FT_ASSIGN_OR_RETURN(const FileLayout own, FileLayout::Create(state, reader.layout().type()));
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  std::deque<StateAtRest> places;  // which stay where they are
  std::vector<Transfer> transfers;
  const auto add = [&](ElementRange range, uint32_t tensor, const StateAtRest& place) {
    const StateAtRest* to = &places.emplace_back(place);
    const uint64_t begin_there = reader.layout().tensors()[tensor].range.begin;
    const ElementRange held = Intersect(range, {to->begin, to->begin + to->elements});
    for (uint64_t at = held.begin; at < held.end; at += kStateChunkElements) {
      const uint64_t from = begin_there + (at - range.begin);
      transfers.push_back({tensor, from, from + std::min(kStateChunkElements, held.end - at), to, at});
    }
  };
  for (const LogicalTensor& tensor : own.tensors()) {
    const StateBuffer& buffer = state.buffers[tensor.buffer];
    const auto there = static_cast<uint32_t>(reader.layout().FindTensor(tensor.name));
    add(tensor.range, there, FindState(plan, executor.operands(), buffer));
    if (buffer.role != kWeightsRole) continue;
    FT_ASSIGN_OR_RETURN(const std::optional<StateAtRest> copy,
                        FindWorkingCopy(plan, dtypes, executor.operands(), buffer.unit));
    if (copy.has_value()) add(tensor.range, there, *copy);
  }
  return LoadInParts(executor, reader, transfers);
}

absl::Status ClearState(const proto::Plan& plan, const StateLayout& state, const Executor& executor) {
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  for (const StateBuffer& buffer : state.buffers) {
    FT_RETURN_IF_ERROR(Clear(executor, FindState(plan, executor.operands(), buffer)));
    if (buffer.role != kWeightsRole) continue;
    FT_ASSIGN_OR_RETURN(const std::optional<StateAtRest> copy,
                        FindWorkingCopy(plan, dtypes, executor.operands(), buffer.unit));
    if (copy.has_value()) FT_RETURN_IF_ERROR(Clear(executor, *copy));
  }
  return absl::OkStatus();
}

ArenaSource::ArenaSource(const proto::Plan& plan, const StateLayout& state, const Executor& executor)
    : executor_(executor) {
  for (const StateBuffer& buffer : state.buffers)
    buffers_.push_back(FindState(plan, executor.operands(), buffer));
}

absl::StatusOr<const std::byte*> ArenaSource::Get(const Extent& extent, uint64_t offset, uint64_t bytes,
                                                  std::byte* scratch) {
  const std::byte* const data = buffers_[extent.buffer].At(extent.element) + offset;
  if (executor_.device().host_accessible()) return data;
  FT_RETURN_IF_ERROR(executor_.Read(scratch, data, bytes));
  return scratch;
}

}  // namespace ft
