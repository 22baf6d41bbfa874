#include "runtime/data/npy_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/content_hash.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/data_list.h"
#include "runtime/data/npy_array.h"
#include "runtime/data/pixel_scale.h"
#include "runtime/data/row_tensor.h"
#include "runtime/plan/inputs.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNpySuffix = ".npy", kPreprocessor = "preprocessor_config.json";

// One array of an input.
struct NpyPart {
  NpyArray array;
  std::optional<RowTensor> rows = {};  // none where bytes become floats
};

// An input with its arrays, one after the other.
struct NpyInput {
  std::vector<NpyPart> parts = {};
  std::vector<int64_t> begins = {0};     // of the examples of each part, and the end
  std::optional<PixelScale> scale = {};  // of bytes that become floats
  int64_t elements = 1;                  // of an example
};

class NpyFolder final : public DataFile {
 public:
  NpyFolder(std::string path, const DataInputs& inputs) : path_(std::move(path)), inputs_(inputs.inputs) {}

  absl::Status Open() {
    FT_RETURN_IF_ERROR(FindFiles());
    for (const proto::Input& input : inputs_) {
      FT_ASSIGN_OR_RETURN(filled_.emplace_back(), OpenInput(input));
    }
    if (num_examples_ < 1) return Invalid("it has no examples");
    for (const auto& [name, file] : files_) {
      if (name != kPreprocessor && !used_.contains(name))
        return Invalid("no input of the model takes {}; its inputs are {}", Quote(name), Names());
    }
    return Hash();
  }

  const std::string& path() const override { return path_; }
  DataFormat format() const override { return DataFormat::kNpy; }
  int64_t num_examples() const override { return num_examples_; }
  int64_t num_tokens() const override { return 0; }
  int token_bytes() const override { return 0; }
  uint64_t bytes() const override { return bytes_; }
  uint64_t content_hash() const override { return content_hash_; }
  const std::string& doubt() const override { return no_doubt_; }

  void Read(int64_t index, absl::Span<void* const> rows) const override {
    for (size_t i = 0; i < filled_.size(); ++i) {
      const NpyInput& input = filled_[i];
      if (input.parts.empty()) continue;
      const auto after = std::upper_bound(input.begins.begin(), input.begins.end(), index);
      const auto part = static_cast<size_t>(after - input.begins.begin()) - 1;
      const int64_t row = index - input.begins[part];
      const NpyPart& from = input.parts[part];
      if (from.rows.has_value()) {
        from.rows->Fill(row, rows[i]);
      } else {
        input.scale->Scale(from.array.bytes().data() + row * input.elements, input.elements,
                           static_cast<float*>(rows[i]));
      }
    }
  }

  absl::Span<const uint8_t> Constant(size_t) const override { return {}; }

 private:
  template <typename... Args>
  absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(
        fmt::format("'{}': {}", path_, fmt::format(format, std::forward<Args>(args)...)));
  }

  std::string Names() const {
    std::string names;
    for (const proto::Input& input : inputs_)
      if (input.filling() != proto::Input::VALUE) names += (names.empty() ? "" : ", ") + input.name();
    return names;
  }

  absl::Status FindFiles() {
    FT_ASSIGN_OR_RETURN(const std::vector<DataPath> found, FindDataFiles(path_));
    for (const DataPath& file : found) files_.emplace(fs::path(file.path).filename().native(), file.path);
    return absl::OkStatus();
  }

  // NAME.npy, or NAME-*.npy.
  std::vector<std::string> FilesOf(const std::string& name) const {
    std::vector<std::string> found;
    for (const auto& [file, path] : files_) {
      const bool numbered = file.starts_with(name + "-") && file.ends_with(kNpySuffix);
      if (numbered || file == name + std::string(kNpySuffix)) found.push_back(file);
    }
    return found;
  }

  absl::StatusOr<NpyInput> OpenInput(const proto::Input& input) {
    NpyInput made;
    if (input.filling() == proto::Input::VALUE) return made;
    if (input.filling() == proto::Input::CONSTANT)
      return Invalid(
          "the model's input '{}' is the same for all examples, which folders of arrays do not hold; "
          "give safetensors files",
          input.name());
    const std::vector<std::string> files = FilesOf(input.name());
    if (files.empty())
      return Invalid("it has no {0}.npy or {0}-*.npy, which the model's input needs: {1} for each example",
                     input.name(), ExampleText(input));
    if (files.size() > 1 && std::count(files.begin(), files.end(), input.name() + ".npy") > 0)
      return Invalid("{} and {} are of one input; keep one of them, or number all", Quote(files[0]),
                     Quote(files[1]));
    for (const int64_t extent : ExampleShape(input)) made.elements *= extent;
    for (const std::string& file : files) {
      FT_ASSIGN_OR_RETURN(NpyArray array, NpyArray::Open(files_.at(file)));
      used_.insert(file);
      FT_RETURN_IF_ERROR(AddPart(std::move(array), input, made));
    }
    if (num_examples_ >= 0 && num_examples_ != made.begins.back())
      return Invalid("input '{}' has {} examples, those before it have {}", input.name(), made.begins.back(),
                     num_examples_);
    num_examples_ = made.begins.back();
    return made;
  }

  absl::Status AddPart(NpyArray array, const proto::Input& input, NpyInput& made) const {
    made.begins.push_back(made.begins.back() + array.shape()[0]);
    if (input.dtype() == proto::F32 && array.dtype() == SafetensorsDType::kU8) {
      FT_RETURN_IF_ERROR(TakeScale(array, input, made));
      made.parts.push_back({.array = std::move(array)});
      return absl::OkStatus();
    }
    FT_ASSIGN_OR_RETURN(const RowTensor rows, RowTensor::Make(array.dtype(), array.shape(), array.bytes(),
                                                              input, fmt::format("'{}'", array.path())));
    made.parts.push_back({.array = std::move(array), .rows = rows});
    return absl::OkStatus();
  }

  absl::Status TakeScale(const NpyArray& array, const proto::Input& input, NpyInput& made) const {
    std::vector<int64_t> wanted = ExampleShape(input);
    const int64_t channels = wanted.empty() ? 1 : wanted[0];
    wanted.insert(wanted.begin(), array.shape()[0]);
    if (array.shape() != wanted)
      return Invalid("'{}' does not have the shape of the model's input, {} for each example", array.path(),
                     ExampleText(input));
    if (!files_.contains(std::string(kPreprocessor)))
      return Invalid(
          "'{}' has bytes for an input of floats; put the {} in the folder that says what they mean "
          "(rescale_factor, image_mean, image_std), or save float32",
          array.path(), kPreprocessor);
    if (made.scale.has_value()) return absl::OkStatus();
    FT_ASSIGN_OR_RETURN(made.scale, PixelScale::Read(files_.at(std::string(kPreprocessor)), channels));
    return absl::OkStatus();
  }

  // Of all files, in the order of their names.
  absl::Status Hash() {
    ContentHash hash;
    for (const auto& [name, path] : files_) {
      FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kSequential));
      hash.Update(file.bytes());
      bytes_ += file.bytes().size();
    }
    content_hash_ = hash.Digest();
    return absl::OkStatus();
  }

  std::string path_;
  const std::vector<proto::Input>& inputs_;
  std::map<std::string, std::string, std::less<>> files_;  // by their names
  std::set<std::string, std::less<>> used_;
  std::vector<NpyInput> filled_;  // of each input; without parts: a value of the plan
  int64_t num_examples_ = -1;
  uint64_t bytes_ = 0, content_hash_ = 0;
  std::string no_doubt_;
};

}  // namespace

bool IsNpyFolder(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  for (fs::directory_iterator file(path, error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename();
    if (name.ends_with(kNpySuffix) && name[0] != '.') return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<DataFile>> OpenNpyFolder(const std::string& path, const DataInputs& inputs) {
  auto folder = std::make_unique<NpyFolder>(path, inputs);
  FT_RETURN_IF_ERROR(folder->Open());
  return folder;
}

}  // namespace ft
