#include "tools/ftckpt/tensor_side.h"

#include <sys/stat.h>

#include <utility>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/state_view.h"
#include "tools/ftckpt/find_checkpoint.h"
#include "tools/ftckpt/plain_tensors.h"

namespace ft::ckpt {
namespace {

// Of a model whose facts say that its head is tied.
std::string NameOfEmbedding(const CheckpointReader& reader) {
  for (const proto::Attribute& fact : reader.manifest().model().facts()) {
    if (fact.name() != "tied_head" || fact.i() != 1) continue;
    for (const StateParameter& parameter : reader.layout().state().parameters) {
      if (parameter.name == "transformer.wte.weight" || parameter.name == "model.embed_tokens.weight")
        return parameter.name;
    }
  }
  return "";
}

// By parameter, also where files hold the flat buffers of units.
class CheckpointSide : public TensorSide {
 public:
  explicit CheckpointSide(std::unique_ptr<CheckpointReader> reader)
      : reader_(std::move(reader)), view_(*reader_) {
    const StateLayout& state = view_.state();
    for (uint32_t b = 0; b < state.buffers.size(); ++b) {
      const StateBuffer& buffer = state.buffers[b];
      state.ForEachTensor(buffer, [&](const StateParameter& parameter, ElementRange range) {
        tensors_.push_back({TensorName(buffer.role, parameter.name),
                            *StateShape(buffer.kind, parameter.shape), DTypeInFile(buffer.dtype),
                            range.size(), buffer.role != kWeightsRole});
        places_.emplace_back(b, range.begin);
      });
    }
    is_checkpoint_ = true;
    tied_head_ = NameOfEmbedding(*reader_);
    title_ = fmt::format("{} (checkpoint, {}, step {})", reader_->folder(), Name(reader_->layout().type()),
                         reader_->manifest().position().steps());
  }

  absl::Status Read(size_t tensor, uint64_t first, uint64_t count, void* out) override {
    const auto [buffer, offset] = places_[tensor];
    return view_.Read(buffer, {offset + first, offset + first + count}, out);
  }

 private:
  std::unique_ptr<CheckpointReader> reader_;
  StateView view_;
  std::vector<std::pair<uint32_t, uint64_t>> places_;  // buffer and first element in the unit, by tensor
};

bool IsThere(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorSide>> OpenSide(const std::string& given) {
  const std::string path = WithoutSlashes(given);
  if (!IsCheckpoint(path)) {
    if (IsThere(path) && !IsFolder(path)) return OpenPlainTensors(path);
    for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
      const std::string inside = fmt::format("{}/{}", path, name);
      if (IsThere(inside)) return OpenPlainTensors(inside);
    }
  }
  FT_ASSIGN_OR_RETURN(const std::string folder, FindCheckpoint(path));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointReader> reader, CheckpointReader::Open(folder));
  return std::make_unique<CheckpointSide>(std::move(reader));
}

}  // namespace ft::ckpt
