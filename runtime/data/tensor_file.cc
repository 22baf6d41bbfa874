#include "runtime/data/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/content_hash.h"
#include "runtime/base/load_element.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_reader.h"
#include "runtime/data/file_kind.h"

namespace ft {
namespace {

using Entry = SafetensorsReader::Entry;

constexpr std::string_view kSuffix = ".safetensors";

SafetensorsDType TypeFor(const proto::Input& input) {
  switch (input.dtype()) {
    case proto::BF16:
      return SafetensorsDType::kBF16;
    case proto::I32:
      return SafetensorsDType::kI32;
    case proto::I64:
      return SafetensorsDType::kI64;
    case proto::U8:
      return SafetensorsDType::kBool;
    default:
      return SafetensorsDType::kF32;
  }
}

// What the file has a tensor for.
bool IsOfFile(const proto::Input& input) { return input.filling() != proto::Input::VALUE; }

// "I32 [examples, 3]".
std::string WantedText(const proto::Input& input) {
  const std::vector<int64_t> shape = ExampleShape(input);
  const bool constant = IsConstant(input);
  return fmt::format("{} [{}{}{}]", Name(TypeFor(input)), constant ? "" : "examples",
                     constant || shape.empty() ? "" : ", ", fmt::join(shape, ", "));
}

std::string FoundText(const Entry& entry) {
  return fmt::format("{} [{}]", Name(entry.dtype), fmt::join(entry.shape, ", "));
}

class TensorFile final : public DataFile {
 public:
  TensorFile(std::unique_ptr<SafetensorsReader> reader, const DataInputs& inputs)
      : reader_(std::move(reader)), inputs_(inputs.inputs) {}

  // All that can be wrong with it.
  absl::Status Check() {
    for (const proto::Input& input : inputs_) FT_RETURN_IF_ERROR(AddTensor(input));
    FT_RETURN_IF_ERROR(CheckUnused());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (IsOfFile(inputs_[i])) FT_RETURN_IF_ERROR(CheckValues(inputs_[i], *tensors_[i]));
    }
    if (num_examples_ < 1) return Invalid("it has no examples");
    content_hash_ = ContentHashOf(file().bytes());
    return absl::OkStatus();
  }

  const std::string& path() const override { return file().path(); }
  DataFormat format() const override { return DataFormat::kSafetensors; }
  int64_t num_examples() const override { return num_examples_; }
  int64_t num_tokens() const override { return 0; }
  int token_bytes() const override { return 0; }
  uint64_t bytes() const override { return file().bytes().size(); }
  uint64_t content_hash() const override { return content_hash_; }
  const std::string& doubt() const override { return no_doubt_; }

  void Read(int64_t index, absl::Span<void* const> rows) const override {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (example_bytes_[i] == 0) continue;  // a constant
      std::memcpy(rows[i], tensors_[i]->bytes.data() + static_cast<size_t>(index) * example_bytes_[i],
                  example_bytes_[i]);
    }
  }

  absl::Span<const uint8_t> Constant(size_t i) const override { return tensors_[i]->bytes; }

 private:
  const MappedFile& file() const { return reader_->files()[0]; }

  template <typename... Args>
  absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(
        fmt::format("'{}': {}", path(), fmt::format(format, std::forward<Args>(args)...)));
  }

  absl::Status AddTensor(const proto::Input& input) {
    if (!IsOfFile(input)) {
      tensors_.push_back(nullptr);
      example_bytes_.push_back(0);
      return absl::OkStatus();
    }
    const Entry* entry = reader_->Find(input.name());
    if (entry == nullptr)
      return Invalid("it has no tensor '{}', which the model's input of this name needs: {}", input.name(),
                     WantedText(input));
    std::vector<int64_t> expected = ExampleShape(input);
    const bool has_examples = !IsConstant(input) && !entry->shape.empty();
    if (has_examples) expected.insert(expected.begin(), entry->shape[0]);
    const bool shaped = (IsConstant(input) || has_examples) && entry->shape == expected;
    if (entry->dtype != TypeFor(input) || !shaped)
      return Invalid("tensor '{}' is {}, but the model's input wants {}; write it so, or change the model",
                     input.name(), FoundText(*entry), WantedText(input));
    if (has_examples && num_examples_ >= 0 && num_examples_ != entry->shape[0])
      return Invalid("tensor '{}' has {} examples, those before it have {}", input.name(), entry->shape[0],
                     num_examples_);
    if (has_examples) num_examples_ = entry->shape[0];
    tensors_.push_back(entry);
    example_bytes_.push_back(has_examples ? ExampleBytes(input) : 0);
    return absl::OkStatus();
  }

  absl::Status CheckUnused() const {
    std::vector<std::string_view> names;
    for (const proto::Input& input : inputs_) {
      if (IsOfFile(input)) names.push_back(input.name());
    }
    for (const Entry& entry : reader_->entries()) {
      if (std::find(names.begin(), names.end(), entry.name) != names.end()) continue;
      return Invalid("no input of the model takes tensor {}; the model's inputs are {}", Quote(entry.name),
                     fmt::join(names, ", "));
    }
    return absl::OkStatus();
  }

  absl::Status CheckValues(const proto::Input& input, const Entry& entry) const {
    switch (entry.dtype) {
      case SafetensorsDType::kBool:
        return CheckRange<uint8_t>(input, entry, 0, 2);
      case SafetensorsDType::kI32:
        return CheckIds<int32_t>(input, entry);
      case SafetensorsDType::kI64:
        return CheckIds<int64_t>(input, entry);
      default:
        return absl::OkStatus();
    }
  }

  template <typename T>
  absl::Status CheckIds(const proto::Input& input, const Entry& entry) const {
    if (input.ids_below() == 0) return absl::OkStatus();
    // Negative ones stay so where they become i32.
    const T least = input.may_be_left_out() ? T{std::numeric_limits<int32_t>::min()} : T{0};
    return CheckRange<T>(input, entry, least, static_cast<T>(input.ids_below()));
  }

  // Tensors may begin at any byte.
  template <typename T>
  absl::Status CheckRange(const proto::Input& input, const Entry& entry, T least, T below) const {
    for (int64_t i = 0; i < entry.num_elements; ++i) {
      const T value = LoadElement<T>(entry.bytes.data(), i);
      if (value >= least && value < below) continue;
      return Invalid("tensor '{}': element {}{} has the value {}, outside of 0 ... {}{}", input.name(), i,
                     PlaceText(entry, i), +value, below - 1,
                     input.may_be_left_out() ? " (or negative: left out)" : "");
    }
    return absl::OkStatus();
  }

  // ", of example 7,".
  static std::string PlaceText(const Entry& entry, int64_t element) {
    if (entry.shape.empty() || entry.shape[0] == 0) return "";
    return fmt::format(", of example {},", element / (entry.num_elements / entry.shape[0]));
  }

  std::unique_ptr<SafetensorsReader> reader_;
  const std::vector<proto::Input>& inputs_;
  std::vector<const Entry*> tensors_;  // of each input; null: a value of the plan
  std::vector<size_t> example_bytes_;  // of each input; 0: a constant
  int64_t num_examples_ = -1;          // of the tensors so far
  uint64_t content_hash_ = 0;
  std::string no_doubt_;
};

}  // namespace

absl::StatusOr<bool> IsTensorFile(const std::string& path) {
  if (path.ends_with(kSuffix)) return true;
  FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kNormal));
  return IsSafetensors(file.bytes());
}

absl::StatusOr<std::unique_ptr<DataFile>> OpenTensorFile(const std::string& path, const DataInputs& inputs) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> reader, SafetensorsReader::Open(path));
  if (reader->files().size() != 1 || reader->files()[0].path() != path)
    return absl::InvalidArgumentError(
        fmt::format("'{}' lists files of a checkpoint; name files of data themselves", path));
  auto file = std::make_unique<TensorFile>(std::move(reader), inputs);
  FT_RETURN_IF_ERROR(file->Check());
  return file;
}

}  // namespace ft
