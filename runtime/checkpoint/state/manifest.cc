#include "runtime/checkpoint/state/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr std::string_view kChecksum = ",\n \"checksum\": \"";
constexpr std::string_view kEnd = "\"\n}\n";

// 64-bit numbers are strings in protobuf's JSON, which no script expects.
void Unquote(const google::protobuf::Message& message, nlohmann::ordered_json& json) {
  using Field = google::protobuf::FieldDescriptor;
  if (message.GetDescriptor()->full_name() == "google.protobuf.Struct") return;  // any JSON object
  const auto* reflection = message.GetReflection();
  for (int f = 0; f < message.GetDescriptor()->field_count(); ++f) {
    const Field* field = message.GetDescriptor()->field(f);
    const auto found = json.find(field->name());
    if (found == json.end()) continue;
    nlohmann::ordered_json& value = *found;
    const bool wide = field->cpp_type() == Field::CPPTYPE_INT64 || field->cpp_type() == Field::CPPTYPE_UINT64;
    const auto number = [](nlohmann::ordered_json& text) {
      if (text.is_string()) text = nlohmann::ordered_json::parse(text.get<std::string>());
    };
    if (wide && field->is_repeated()) {
      for (nlohmann::ordered_json& one : value) number(one);
    } else if (wide) {
      number(value);
    } else if (field->cpp_type() == Field::CPPTYPE_MESSAGE && field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i)
        Unquote(reflection->GetRepeatedMessage(message, field, i), value[static_cast<size_t>(i)]);
    } else if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      Unquote(reflection->GetMessage(message, field), value);
    }
  }
}

template <typename... Args>
absl::Status Bad(std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format("'{}': {}", name, fmt::format(format, std::forward<Args>(args)...)));
}

absl::StatusOr<DType> DTypeNamed(std::string_view name) {
  for (const DType dtype :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64, DType::kU8}) {
    if (Name(dtype) == name) return dtype;
  }
  return absl::InvalidArgumentError(fmt::format("{} is no type of elements", Quote(name)));
}

}  // namespace

absl::StatusOr<std::string> ManifestText(const proto::Manifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  if (const auto status = google::protobuf::util::MessageToJsonString(manifest, &text, options); !status.ok())
    return absl::InternalError(fmt::format("the manifest cannot be written: {}", status.ToString()));
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  Unquote(manifest, json);
  text = json.dump(1);
  text.resize(text.rfind("\n}"));
  text += kChecksum;
  return fmt::format("{}{:08x}{}", text, Crc32(0, text.data(), text.size()), kEnd);
}

absl::StatusOr<proto::Manifest> ParseManifest(std::string_view text, std::string_view name) {
  constexpr size_t kDigits = 8;
  const size_t tail = kDigits + kEnd.size();
  const size_t body = text.size() < tail ? 0 : text.size() - tail;
  const std::string_view before = text.substr(0, body);
  if (body < kChecksum.size() || !text.ends_with(kEnd) || !before.ends_with(kChecksum))
    return absl::DataLossError(
        fmt::format("'{}': its end with the checksum is missing: it was cut short", name));
  if (text.substr(body, kDigits) != fmt::format("{:08x}", Crc32(0, before.data(), before.size())))
    return absl::DataLossError(fmt::format("'{}': its checksum is another: it is damaged", name));
  const std::string json = std::string(before.substr(0, body - kChecksum.size())) + "}";
  proto::Manifest manifest;
  if (const auto status = google::protobuf::util::JsonStringToMessage(json, &manifest); !status.ok())
    return Bad(name, "no manifest of a checkpoint: {}", OneLine(status.ToString()));
  if (manifest.version() != kManifestVersion)
    return Bad(name, "a manifest of version {}, and this program reads version {}", manifest.version(),
               kManifestVersion);
  return manifest;
}

void SetLayout(const FileLayout& files, proto::Manifest& manifest) {
  const StateLayout& layout = files.state();
  manifest.set_type(std::string(Name(files.type())));
  proto::Manifest::State& state = *manifest.mutable_state();
  state.set_max_file_bytes(files.max_file_bytes());
  state.set_replica(static_cast<uint32_t>(layout.mesh.replica));
  state.set_shard(static_cast<uint32_t>(layout.mesh.shard));
  state.set_block_elements(layout.block_elements);
  for (const StateUnit& unit : layout.units) {
    proto::Manifest::State::Unit& out = *state.add_units();
    out.set_name(unit.name);
    out.set_elements(unit.elements);
  }
  for (const StateParameter& parameter : layout.parameters) {
    proto::Manifest::State::Parameter& out = *state.add_parameters();
    out.set_name(parameter.name);
    out.mutable_shape()->Assign(parameter.shape.begin(), parameter.shape.end());
    out.set_unit(parameter.unit);
    out.set_offset(parameter.offset);
    out.set_stored_as(parameter.stored_as);
  }
  for (const StateBuffer& buffer : layout.buffers) {
    proto::Manifest::State::Buffer& out = *state.add_buffers();
    out.set_unit(buffer.unit);
    out.set_role(buffer.role);
    out.set_dtype(std::string(Name(buffer.dtype)));
    out.set_sliced(buffer.sliced);
    out.set_layout(static_cast<proto::Plan::UnitState::Layout>(buffer.kind));
  }
}

absl::StatusOr<FileLayout> LayoutOf(const proto::Manifest& manifest) {
  const proto::Manifest::State& state = manifest.state();
  FT_ASSIGN_OR_RETURN(const CheckpointType type, ParseCheckpointType(manifest.type()));
  constexpr uint32_t kMost = 1u << 20;
  StateLayout layout;
  layout.mesh = {static_cast<int>(std::min(state.replica(), kMost + 1)),
                 static_cast<int>(std::min(state.shard(), kMost + 1))};
  layout.block_elements = state.block_elements();
  for (const auto& unit : state.units()) layout.units.push_back({unit.name(), unit.elements()});
  for (const auto& parameter : state.parameters()) {
    StateParameter& out = layout.parameters.emplace_back();
    out = {parameter.name(),
           {parameter.shape().begin(), parameter.shape().end()},
           parameter.unit(),
           parameter.offset(),
           1,
           parameter.stored_as()};
    for (const int64_t extent : out.shape) {
      if (__builtin_mul_overflow(out.elements, static_cast<uint64_t>(extent), &out.elements))
        return absl::InvalidArgumentError(fmt::format("parameter {} is too large", Quote(parameter.name())));
    }
  }
  for (const auto& buffer : state.buffers()) {
    FT_ASSIGN_OR_RETURN(const DType dtype, DTypeNamed(buffer.dtype()));
    layout.buffers.push_back({buffer.unit(), buffer.role(), dtype, buffer.sliced(),
                              static_cast<StateLayoutKind>(buffer.layout())});
  }
  FT_RETURN_IF_ERROR(layout.Check());
  return FileLayout::Create(std::move(layout), type, state.max_file_bytes());
}

void AddFile(std::string_view name, const FileSums& sums, proto::Manifest& manifest) {
  proto::Manifest::File& file = *manifest.add_files();
  file.set_name(std::string(name));
  file.set_bytes(sums.bytes);
  std::string& blocks = *file.mutable_crc32();
  for (const uint32_t crc : sums.blocks) {
    for (int shift = 0; shift < 32; shift += 8) blocks.push_back(static_cast<char>(crc >> shift & 0xFF));
  }
}

absl::StatusOr<FileSums> SumsOf(const proto::Manifest::File& file, uint64_t block_bytes) {
  FileSums sums = {.bytes = file.bytes(), .blocks = {}};
  const uint64_t blocks = sums.bytes / block_bytes + (sums.bytes % block_bytes != 0 ? 1 : 0);
  if (file.crc32().size() % 4 != 0 || file.crc32().size() / 4 != blocks)
    return absl::InvalidArgumentError(
        fmt::format("the manifest has not one checksum for each block of {}", Quote(file.name())));
  for (uint64_t b = 0; b < blocks; ++b) {
    uint32_t crc = 0;
    for (size_t i = 0; i < 4; ++i) crc |= uint32_t{static_cast<uint8_t>(file.crc32()[4 * b + i])} << (8 * i);
    sums.blocks.push_back(crc);
  }
  return sums;
}

}  // namespace ft
