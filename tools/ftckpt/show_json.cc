#include "tools/ftckpt/show_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ft::ckpt {
namespace {

using Json = nlohmann::ordered_json;

// The depth is that of a manifest, which its parser bounds.
void BoundTexts(Json& json) {
  if (json.is_string()) {
    std::string& text = json.get_ref<std::string&>();
    if (text.size() > kMaxLineBytes) text = OneLine(text);
  } else if (json.is_object()) {
    Json bounded = Json::object();
    for (auto& [name, value] : json.items()) {
      BoundTexts(value);
      bounded[name.size() > kMaxNameBytes ? OneLine(name, kMaxNameBytes) : name] = std::move(value);
    }
    json = std::move(bounded);
  } else if (json.is_array()) {
    for (Json& value : json) BoundTexts(value);
  }
}

Json JsonFiles(const proto::Manifest& manifest) {
  Json files = Json::array();
  for (const auto& file : manifest.files()) files.push_back({{"name", file.name()}, {"bytes", file.bytes()}});
  return files;
}

Json JsonStates(const StateLayout& state) {
  std::map<std::string, std::set<std::string>> dtypes;
  for (const StateBuffer& buffer : state.buffers) dtypes[buffer.role].insert(std::string(Name(buffer.dtype)));
  Json states = Json::object();
  for (const auto& [role, types] : dtypes) states[role] = types;
  return states;
}

Json JsonTensors(const StateLayout& state) {
  Json tensors = Json::array();
  for (const StateBuffer& buffer : state.buffers) {
    state.ForEachTensor(buffer, [&](const StateParameter& parameter, ElementRange) {
      tensors.push_back({{"name", TensorName(buffer.role, parameter.name)},
                         {"shape", *StateShape(buffer.kind, parameter.shape)},
                         {"dtype", Name(buffer.dtype)},
                         {"role", buffer.role},
                         {"unit", state.units[buffer.unit].name}});
    });
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::string> JsonOf(const CheckpointReader& reader, bool tensors) {
  proto::Manifest manifest = reader.manifest();
  manifest.clear_state();
  manifest.clear_files();
  manifest.clear_block_bytes();
  FT_ASSIGN_OR_RETURN(const std::string text, ManifestText(manifest));
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return absl::InternalError("the manifest cannot be written as JSON");
  Json json = {{"path", reader.folder()}};
  for (const auto& [name, value] : parsed.items()) {
    if (name != "checksum" && name != "files" && name != "block_bytes" && name != "state") json[name] = value;
  }
  const StateLayout& state = reader.layout().state();
  json["mesh"] = {{"replica", state.mesh.replica}, {"shard", state.mesh.shard}};
  json["ranks"] = state.world_size();
  json["files"] = JsonFiles(reader.manifest());
  json["states"] = JsonStates(state);
  if (tensors) json["tensors"] = JsonTensors(state);
  BoundTexts(json);
  return json.dump(2, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

}  // namespace ft::ckpt
