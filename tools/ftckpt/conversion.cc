#include "tools/ftckpt/conversion.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/convert_elements.h"
#include "runtime/base/output_check.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/completion.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/model_config.h"
#include "runtime/checkpoint/state/peft.h"
#include "runtime/checkpoint/state/staged_folder.h"
#include "runtime/checkpoint/state/tensor_index.h"
#include "tools/ftckpt/converted_state.h"

namespace ft::ckpt {
namespace {

namespace fs = std::filesystem;

CheckpointType TypeOf(const ConversionRequest& request, const CheckpointReader& source) {
  return request.hugging_face ? CheckpointType::kFull : request.type.value_or(source.layout().type());
}

// As a plan would place so many ranks by default; shards of two axes keep their size where they can.
Mesh MeshOf(const StateLayout& state, int ranks) {
  const bool sliced = std::any_of(state.buffers.begin(), state.buffers.end(),
                                  [](const StateBuffer& buffer) { return buffer.sliced; });
  if (!sliced) return {ranks, 1};
  const Mesh before = state.mesh;
  if (before.replica > 1 && ranks % before.shard == 0) return {ranks / before.shard, before.shard};
  return {1, ranks};
}

absl::Status SetDType(const std::optional<DType>& dtype, StateBuffer& buffer) {
  if (!dtype.has_value() || buffer.dtype == *dtype) return absl::OkStatus();
  if (!IsConvertible(buffer.dtype))
    return absl::InvalidArgumentError(fmt::format("{} is of type {} there, which is not converted",
                                                  Quote(buffer.role), Name(buffer.dtype)));
  buffer.dtype = *dtype;
  return absl::OkStatus();
}

absl::Status CheckMeshOf(const ConversionRequest& request, CheckpointType type, const Mesh& before,
                         const Mesh& mesh) {
  const bool by_rank = !request.hugging_face && type != CheckpointType::kFull;
  if (by_rank && mesh.world_size() > kMostRankFiles)
    return absl::InvalidArgumentError(
        fmt::format("a file for each of {} ranks is too many (at most {}); choose others with --ranks",
                    mesh.world_size(), kMostRankFiles));
  if (mesh == before) return absl::OkStatus();
  if (!by_rank)
    return absl::InvalidArgumentError(
        "files of whole tensors are the same for any ranks: --ranks and --mesh are for --to=sharded");
  if (type == CheckpointType::kLocal)
    return absl::InvalidArgumentError(fmt::format(
        "a checkpoint of type local is for the ranks that its state had, here {}; make one of type "
        "sharded",
        MeshText(before)));
  return absl::OkStatus();
}

bool MakesAdapters(const ConversionRequest& request, const CheckpointReader& source) {
  return request.hugging_face && source.manifest().model().has_lora();
}

// What is trained is all that PEFT wants, under its names.
void KeepAdapters(const proto::Manifest::Model& model, StateLayout& state) {
  const AdapterParameters adapters(model.lora());
  std::erase_if(state.parameters,
                [&](const StateParameter& parameter) { return !adapters.Has(parameter.name); });
  std::erase_if(state.buffers, [&](const StateBuffer& buffer) {
    return std::none_of(state.parameters.begin(), state.parameters.end(),
                        [&](const StateParameter& parameter) { return parameter.unit == buffer.unit; });
  });
  for (StateParameter& parameter : state.parameters) parameter.name = PeftName(model.facts(), parameter.name);
}

absl::StatusOr<StateLayout> StateFor(const ConversionRequest& request, const CheckpointReader& source) {
  StateLayout state = source.layout().state();
  const Mesh before = state.mesh;
  if (request.mesh.has_value()) state.mesh = *request.mesh;
  if (request.ranks > 0) state.mesh = MeshOf(state, request.ranks);
  FT_RETURN_IF_ERROR(CheckMeshOf(request, TypeOf(request, source), before, state.mesh));
  if (request.hugging_face)
    std::erase_if(state.buffers, [](const StateBuffer& buffer) { return buffer.role != kWeightsRole; });
  if (MakesAdapters(request, source)) KeepAdapters(source.manifest().model(), state);
  for (StateBuffer& buffer : state.buffers)
    FT_RETURN_IF_ERROR(SetDType(buffer.role == kWeightsRole ? request.weights : request.optimizer, buffer));
  OrderBuffers(state.buffers);
  if (request.hugging_face) FT_RETURN_IF_ERROR(SplitIntoParts(state));
  FT_RETURN_IF_ERROR(state.Check());
  if (request.hugging_face && state.buffers.empty())
    return absl::InvalidArgumentError("the checkpoint has no weights");
  return state;
}

// What is written must not lie in what is read.
absl::Status CheckApart(const std::string& source, const std::string& destination) {
  std::error_code error;
  const fs::path from = fs::weakly_canonical(source, error);
  if (error) return absl::OkStatus();  // whoever opens it says why
  const fs::path to = fs::weakly_canonical(destination, error);
  const auto [end_of_from, end_of_to] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  if (error || end_of_from != from.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}' lies in the checkpoint that is converted, which stays as it is", destination));
}

// A name of a checkpoint says its step; one that says another is passed over where the newest is looked for.
absl::Status CheckName(const std::string& destination, const CheckpointReader& source) {
  const fs::path path = fs::path(destination).lexically_normal();
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename();
  const uint64_t steps = source.manifest().position().steps();
  if (StepOfName(name) < 0 || name == CheckpointName(steps)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}' is the name of a checkpoint of another step, and '{}' is of step {}; call it {}, or "
                  "something else",
                  destination, source.folder(), steps, CheckpointName(steps)));
}

// Writes all files of `layout` and returns what came of it. Files of whole tensors do not depend on ranks, so
// one writes them all.
absl::StatusOr<WrittenShare> WriteFiles(const FileLayout& layout, const std::string& folder,
                                        StateSource& source, Converted& converted) {
  WrittenShare all;
  const auto write = [&](const FileLayout& of, int rank) -> absl::Status {
    const Share share(of, rank);
    FT_ASSIGN_OR_RETURN(WrittenShare written, WriteShare(share, folder, source));
    all.Append(std::move(written));
    converted.bytes += share.bytes();
    return absl::OkStatus();
  };
  converted.files = layout.num_files();
  if (layout.type() != CheckpointType::kFull) {
    for (int rank = 0; rank < layout.state().world_size(); ++rank) FT_RETURN_IF_ERROR(write(layout, rank));
    return all;
  }
  StateLayout one = layout.state();
  one.mesh = {1, 1};
  FT_ASSIGN_OR_RETURN(const FileLayout whole,
                      FileLayout::Create(std::move(one), layout.type(), layout.max_file_bytes()));
  FT_RETURN_IF_ERROR(write(whole, 0));
  return all;
}

ExtraFiles FurtherFiles(const FileLayout& layout, const proto::Manifest& manifest, Converted& converted) {
  ExtraFiles extra = TensorIndices(layout);
  if (layout.type() != CheckpointType::kFull) return extra;
  absl::StatusOr<std::string> config =
      ConfigOfModel("the manifest", manifest.model().facts(), layout.state());
  if (config.ok()) {
    extra.emplace_back("config.json", *std::move(config));
  } else {
    converted.notes.push_back(fmt::format("there is no config.json beside the weights: {}",
                                          std::string(config.status().message())));
  }
  return extra;
}

// Beside the weights, in the file that PEFT looks for.
absl::Status CompleteAdapters(const FileLayout& layout, const std::string& folder,
                              const CheckpointReader& source, Converted& converted) {
  const proto::Manifest& manifest = source.manifest();
  std::vector<std::string> names;
  for (const auto& parameter : manifest.state().parameters()) names.push_back(parameter.name());
  const std::string config = PeftConfigJson(
      manifest.model().lora(),
      ConfigOfModel("the manifest", manifest.model().facts(), layout.state()).value_or(""), "", names);
  std::error_code error;
  fs::rename(fs::path(folder) / layout.FileName(0), fs::path(folder) / kPeftWeightsFile, error);
  if (error) return PosixError(error.value(), "rename", layout.FileName(0));
  converted.bytes += config.size();
  ++converted.files;
  return WriteSyncedFile(folder, kPeftConfigFile, config);
}

absl::Status Complete(const ConversionRequest& request, const FileLayout& layout, const std::string& folder,
                      WrittenShare written, proto::Manifest manifest, Converted& converted) {
  const ExtraFiles extra = FurtherFiles(layout, manifest, converted);
  for (const auto& [name, contents] : extra) converted.bytes += contents.size();
  converted.files += static_cast<int>(extra.size());
  if (request.hugging_face) {
    for (const auto& [name, contents] : extra) FT_RETURN_IF_ERROR(WriteSyncedFile(folder, name, contents));
    return absl::OkStatus();
  }
  // All else that decides the next step stays as it was: position, health, run, settings.
  manifest.set_producer("ftckpt " FT_VERSION);
  manifest.clear_branch();  // it lies in another folder
  return CompleteCheckpoint(layout, folder, extra, std::move(written), std::move(manifest));
}

std::string FormOf(const ConversionRequest& request, const FileLayout& layout, bool is_adapters) {
  if (is_adapters) return "adapters for PEFT";
  if (request.hugging_face) return "weights for Hugging Face";
  if (layout.type() == CheckpointType::kFull) return "full";
  return fmt::format("{} for {} ({} rank{})", Name(layout.type()), MeshText(layout.state().mesh),
                     layout.state().world_size(), layout.state().world_size() == 1 ? "" : "s");
}

}  // namespace

absl::StatusOr<Converted> ConvertCheckpoint(const ConversionRequest& request, CheckpointReader& source) {
  FT_RETURN_IF_ERROR(CheckApart(source.folder(), request.destination));
  FT_RETURN_IF_ERROR(CheckName(request.destination, source));
  FT_ASSIGN_OR_RETURN(StateLayout state, StateFor(request, source));
  const uint64_t max_bytes =
      MakesAdapters(request, source)
          ? std::numeric_limits<uint64_t>::max()
          : request.max_file_bytes.value_or(request.hugging_face ? FileLayout::kMaxFileBytes
                                                                 : source.layout().max_file_bytes());
  FT_ASSIGN_OR_RETURN(const FileLayout layout,
                      FileLayout::Create(std::move(state), TypeOf(request, source), max_bytes));
  for (const std::string& name : source.FileNames()) FT_RETURN_IF_ERROR(source.CheckSize(name));
  FT_ASSIGN_OR_RETURN(StagedFolder staged, StagedFolder::Make(request.destination));
  FT_RETURN_IF_ERROR(CheckRoom(staged.path(), staged.path(), StateBytes(layout.state())));
  Converted converted;
  StateView view(source);
  ConvertedState values(view, layout.state());
  FT_ASSIGN_OR_RETURN(WrittenShare written, WriteFiles(layout, staged.path(), values, converted));
  FT_RETURN_IF_ERROR(
      MakesAdapters(request, source)
          ? CompleteAdapters(layout, staged.path(), source, converted)
          : Complete(request, layout, staged.path(), std::move(written), source.manifest(), converted));
  FT_RETURN_IF_ERROR(staged.Publish());
  converted.form = FormOf(request, layout, MakesAdapters(request, source));
  if (values.overflowed() > 0)
    converted.notes.push_back(fmt::format("{} value{} beyond the range of the new type became infinite",
                                          values.overflowed(), values.overflowed() == 1 ? "" : "s"));
  return converted;
}

}  // namespace ft::ckpt
