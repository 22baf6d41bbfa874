#include "runtime/executor/save_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "runtime/base/output_check.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_writer.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/peft.h"
#include "runtime/checkpoint/state/share_writer.h"
#include "runtime/checkpoint/state/staged_folder.h"
#include "runtime/checkpoint/state/tensor_index.h"
#include "runtime/executor/weight_sink.h"
#include "runtime/executor/weights_stream.h"
#include "runtime/plan/plan_facts.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

// What a tokenizer, or what prepares pictures, consists of in folders of transformers, and how to generate.
constexpr const char* kCompanions[] = {"tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "vocab.txt",
                                       "tokenizer.model",
                                       "spiece.model",
                                       "sentencepiece.bpe.model",
                                       "chat_template.jinja",
                                       "chat_template.json",
                                       "generation_config.json",
                                       "preprocessor_config.json"};

// Of a model with adapters these, and modules that are trained whole, are saved.
Streamed SavedOf(const proto::Plan& plan) { return plan.has_lora() ? Streamed::kTrained : Streamed::kAll; }

absl::StatusOr<std::vector<StreamedTensor>> TensorsToSave(const proto::Plan& plan) {
  FT_ASSIGN_OR_RETURN(std::vector<StreamedTensor> tensors, TensorsOfStream(plan, SavedOf(plan)));
  if (!plan.has_lora()) return tensors;
  for (StreamedTensor& tensor : tensors) tensor.name = PeftName(plan.facts(), tensor.name);
  return tensors;
}

// Most bytes of tensors in a file. Of adapters PEFT knows one.
uint64_t MostBytes(const proto::Plan& plan, const FolderRequest& request) {
  return plan.has_lora() ? std::numeric_limits<uint64_t>::max() : request.max_file_bytes;
}

// Files of the folder and the tensors in each, in the order of the stream.
std::vector<WeightFile> FilesOf(const proto::Plan& plan, const std::vector<StreamedTensor>& tensors,
                                const FolderRequest& request) {
  const uint64_t most = MostBytes(plan, request);
  const char* whole = plan.has_lora() ? kPeftWeightsFile : "model.safetensors";
  std::vector<WeightFile> files(1);
  uint64_t bytes = 0;
  for (const StreamedTensor& tensor : tensors) {
    const DType dtype = request.dtype.value_or(tensor.dtype);
    const uint64_t own = tensor.elements * SizeOf(dtype);
    if (bytes > 0 && bytes + own > most) files.emplace_back(), bytes = 0;
    files.back().tensors.push_back({tensor.name, DTypeInFile(dtype), tensor.shape});
    bytes += own;
  }
  for (size_t i = 0; i < files.size(); ++i)
    files[i].name =
        files.size() == 1 ? whole : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
  return files;
}

absl::Status WriteIndex(const WeightSink& sink, const std::string& folder, SavedFolder& saved) {
  if (sink.files().size() < 2) return absl::OkStatus();
  std::vector<std::pair<std::string, std::string>> places;
  for (const WeightFile& file : sink.files()) {
    for (const TensorSpec& tensor : file.tensors) places.emplace_back(tensor.name, file.name);
  }
  ++saved.files;
  return WriteSyncedFile(folder, "model.safetensors.index.json", TensorIndex(places, sink.bytes()));
}

// The config.json of the model, or why it has none.
absl::StatusOr<std::string> ConfigOf(const proto::Plan& plan, const FolderRequest& request, DType dtype) {
  FT_ASSIGN_OR_RETURN(const std::optional<ModelFacts> facts, FactsOf(plan));
  if (!facts.has_value()) return absl::InvalidArgumentError("the model does not say its facts (ft.facts)");
  return ConfigJson(*facts, dtype, request.origin);
}

absl::Status WritePeftConfig(const proto::Plan& plan, const FolderRequest& request, DType dtype,
                             const std::string& folder, SavedFolder& saved) {
  std::vector<std::string> names;
  for (const proto::Parameter& parameter : plan.parameters()) names.push_back(parameter.name());
  ++saved.files;
  return WriteSyncedFile(
      folder, kPeftConfigFile,
      PeftConfigJson(plan.lora(), ConfigOf(plan, request, dtype).value_or(""), request.origin, names));
}

// What the run started from is of the same model, or the run would have refused it.
absl::Status WriteConfig(const proto::Plan& plan, const FolderRequest& request, DType dtype,
                         const std::string& folder, SavedFolder& saved) {
  const absl::StatusOr<std::string> config = ConfigOf(plan, request, dtype);
  if (!config.ok()) {
    saved.notes.push_back(fmt::format("there is no config.json beside the weights: {}",
                                      std::string(config.status().message())));
    return absl::OkStatus();
  }
  ++saved.files;
  return WriteSyncedFile(folder, "config.json", *config);
}

absl::Status CopyCompanions(const FolderRequest& request, const std::string& folder, SavedFolder& saved) {
  const std::string& from = request.tokenizer.empty() ? request.origin : request.tokenizer;
  int copied = 0;
  for (const char* name : kCompanions) {
    if (from.empty()) break;
    const fs::path source = fs::path(from) / name;
    std::error_code error;
    if (!fs::is_regular_file(source, error)) continue;
    const fs::path target = fs::path(folder) / name;
    if (!fs::copy_file(source, target, error))
      return PosixError(error.value(), "copy into the folder", source.string());
    FT_RETURN_IF_ERROR(SyncPath(target.string()));
    ++copied;
  }
  saved.files += copied;
  if (copied == 0)
    saved.notes.push_back(from.empty()
                              ? "there is no tokenizer beside the weights: --tokenizer=DIR copies one"
                              : fmt::format("there is no tokenizer beside the weights: '{}' has none", from));
  return absl::OkStatus();
}

// Of tensors of several types, as ConfigJson is told.
DType DTypeOfFolder(const std::vector<StreamedTensor>& tensors, const FolderRequest& request) {
  if (request.dtype.has_value()) return *request.dtype;
  const DType first = tensors.front().dtype;
  const bool same = std::ranges::all_of(tensors, [&](const StreamedTensor& t) { return t.dtype == first; });
  return same ? first : DType::kF32;
}

}  // namespace

absl::StatusOr<SavedFolder> SaveFolder(const proto::Plan& plan, const Executor& executor,
                                       Communicator& communicator, const FolderRequest& request) {
  SavedFolder saved;
  const auto nothing = [](const std::byte*, uint64_t) { return absl::OkStatus(); };
  if (communicator.rank() != 0) {
    FT_RETURN_IF_ERROR(StreamWeights(plan, executor, communicator, nothing, SavedOf(plan)));
    return saved;
  }
  FT_ASSIGN_OR_RETURN(std::vector<StreamedTensor> tensors, TensorsToSave(plan));
  FT_ASSIGN_OR_RETURN(StagedFolder staged, StagedFolder::Make(request.folder));
  const DType dtype = DTypeOfFolder(tensors, request);
  std::vector<WeightFile> files = FilesOf(plan, tensors, request);
  WeightSink sink(std::move(tensors), std::move(files), request.dtype, staged.path() + "/");
  FT_RETURN_IF_ERROR(StreamWeights(
      plan, executor, communicator,
      [&](const std::byte* elements, uint64_t count) { return sink.Take(elements, count); }, SavedOf(plan)));
  if (!sink.IsComplete()) return absl::InternalError("some weights did not come by");
  saved.files = static_cast<int>(sink.files().size());
  saved.bytes = sink.bytes();
  FT_RETURN_IF_ERROR(WriteIndex(sink, staged.path(), saved));
  FT_RETURN_IF_ERROR(
      (plan.has_lora() ? WritePeftConfig : WriteConfig)(plan, request, dtype, staged.path(), saved));
  FT_RETURN_IF_ERROR(CopyCompanions(request, staged.path(), saved));
  if (sink.overflowed() > 0)
    saved.notes.push_back(fmt::format("{} value{} beyond the range of the type became infinite",
                                      sink.overflowed(), sink.overflowed() == 1 ? "" : "s"));
  FT_RETURN_IF_ERROR(staged.Publish());
  return saved;
}

absl::Status CheckFolderOutput(const proto::Plan& plan, const FolderRequest& request) {
  FT_ASSIGN_OR_RETURN(const std::vector<StreamedTensor> tensors, TensorsToSave(plan));
  // What is made here goes again; what is there already is found.
  FT_ASSIGN_OR_RETURN(const StagedFolder staged, StagedFolder::Make(request.folder));
  FT_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOfFolder(plan, request));
  uint64_t largest = 0;  // tensor
  for (const StreamedTensor& tensor : tensors)
    largest = std::max(largest, tensor.elements * SizeOf(request.dtype.value_or(tensor.dtype)));
  FT_RETURN_IF_ERROR(
      CheckFileLimit(request.folder, std::min(bytes, std::max(largest, MostBytes(plan, request)))));
  return CheckRoom(request.folder, staged.path(), bytes);
}

absl::StatusOr<uint64_t> BytesOfFolder(const proto::Plan& plan, const FolderRequest& request) {
  uint64_t bytes = 0;
  FT_ASSIGN_OR_RETURN(const std::vector<StreamedTensor> tensors, TensorsToSave(plan));
  for (const StreamedTensor& tensor : tensors)
    bytes += tensor.elements * SizeOf(request.dtype.value_or(tensor.dtype));
  return bytes;
}

}  // namespace ft
