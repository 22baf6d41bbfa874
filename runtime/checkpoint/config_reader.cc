#include "runtime/checkpoint/config_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "runtime/base/printable.h"
#include "runtime/checkpoint/inert_keys.h"

namespace ft {
namespace {

using nlohmann::json;

constexpr size_t kShownBytes = 80;
constexpr int64_t kMaxNumber = int64_t{1} << 31;  // that of facts

// Names of transformers for functions that are the same, in ours.
std::string Canonical(const std::string& activation) {
  static const std::map<std::string, std::string> names = {{"gelu_new", "gelu_tanh"},
                                                           {"gelu_pytorch_tanh", "gelu_tanh"},
                                                           {"gelu_python_tanh", "gelu_tanh"},
                                                           {"gelu_accurate", "gelu_tanh"},
                                                           {"gelu_fast", "gelu_tanh"},
                                                           {"gelu_python", "gelu"},
                                                           {"swish", "silu"}};
  const auto found = names.find(activation);
  return found == names.end() ? activation : found->second;
}

// Keys that say "this is not used".
bool SaysNothing(const json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         ((value.is_array() || value.is_object()) && value.empty());
}

template <typename T>
bool IsA(const json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, double>) return value.is_number();
  if constexpr (std::is_same_v<T, int64_t>)
    return value.is_number_integer() && value >= -kMaxNumber && value <= kMaxNumber;
  return false;
}

template <typename T>
std::optional<std::vector<T>> ListOf(const json& value) {
  if (!value.is_array() || value.size() > kMaxConfigList) return std::nullopt;
  std::vector<T> list;
  for (const json& element : value) {
    if (!IsA<T>(element)) return std::nullopt;
    list.push_back(element.get<T>());
  }
  return list;
}

}  // namespace

std::string JsonText(const json& value) {
  return OneLine(value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace), kShownBytes);
}

std::string QuotedText(const std::string& text) { return JsonText(json(text)); }

ConfigReader::ConfigReader(const json& config, std::string model_type) : config_(config), object_(&config) {
  facts_.model_type = std::move(model_type);
  understood_.insert("model_type");
}

const json* ConfigReader::Find(std::string_view key) {
  understood_.insert(FullName(key));
  const auto found = object_->find(key);
  return found == object_->end() ? nullptr : &*found;
}

bool ConfigReader::Has(std::string_view key) const { return object_->contains(key); }

bool ConfigReader::IsNull(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_null();
}

void ConfigReader::WrongType(std::string_view key, std::string_view expected) {
  Fault(
      fmt::format("{} is {}, expected {}", FullName(key), JsonText(object_->at(std::string(key))), expected));
}

void ConfigReader::Read(std::string_view key, int64_t ModelFacts::* fact, int64_t absent,
                        std::optional<int64_t> null) {
  const bool is_null = IsNull(key);
  const std::optional<int64_t> value = Number(key);
  const FactField& field = FactOf(fact);
  const bool readable = value.has_value() || !Has(key) || (is_null && null.has_value());
  if (readable && value.has_value() && (*value < 0 || (field.required && *value == 0))) {
    WrongType(key, field.required ? "a positive number" : "no negative number");
    SetUnknown(fact);
  } else if (!readable) {
    if (is_null) WrongType(key, "a number");
    SetUnknown(fact);
  }
  Set(fact, value.value_or(is_null ? null.value_or(0) : absent), key);
}

void ConfigReader::Read(std::string_view key, double ModelFacts::* fact, double absent,
                        std::optional<double> null) {
  const bool is_null = IsNull(key);
  const std::optional<double> value = Real(key);
  if (!value.has_value() && Has(key) && !(is_null && null.has_value())) {
    if (is_null) WrongType(key, "a number");
    SetUnknown(fact);
  }
  Set(fact, value.value_or(is_null ? null.value_or(0) : absent), key);
}

void ConfigReader::Read(std::string_view key, bool ModelFacts::* fact, bool absent) {
  const std::optional<bool> value = Flag(key);
  if (!value.has_value() && Has(key)) {
    if (IsNull(key)) WrongType(key, "true or false");
    SetUnknown(fact);
  }
  Set(fact, value.value_or(absent), key);
}

void ConfigReader::ReadActivation(std::string_view key, std::string_view absent) {
  const std::optional<std::string> value = Text(key);
  if (!value.has_value() && Has(key)) {
    if (IsNull(key)) WrongType(key, "the name of an activation");
    SetUnknown(&ModelFacts::activation);
  }
  Set(&ModelFacts::activation, Canonical(value.value_or(std::string(absent))), key);
}

std::optional<int64_t> ConfigReader::Number(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (IsA<int64_t>(*value)) return value->get<int64_t>();
  WrongType(key, value->is_number_integer() ? "a smaller number" : "a whole number");
  return std::nullopt;
}

std::optional<double> ConfigReader::Real(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  WrongType(key, "a number");
  return std::nullopt;
}

std::optional<bool> ConfigReader::Flag(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  WrongType(key, "true or false");
  return std::nullopt;
}

std::optional<std::string> ConfigReader::Text(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  WrongType(key, "a text");
  return std::nullopt;
}

template <typename T>
std::optional<std::vector<T>> ConfigReader::List(std::string_view key, std::string_view expected) {
  const json* value = Find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  auto list = ListOf<T>(*value);
  if (!list.has_value()) WrongType(key, expected);
  return list;
}

std::optional<std::vector<int64_t>> ConfigReader::Numbers(std::string_view key) {
  return List<int64_t>(key, "a list of whole numbers");
}

std::optional<std::vector<double>> ConfigReader::Reals(std::string_view key) {
  return List<double>(key, "a list of numbers");
}

std::optional<std::vector<std::string>> ConfigReader::Texts(std::string_view key) {
  return List<std::string>(key, "a list of texts");
}

std::optional<int64_t> ConfigReader::Size(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_object()) return static_cast<int64_t>(value->size());
  WrongType(key, "an object");
  return std::nullopt;
}

bool ConfigReader::Enter(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr || SaysNothing(*value)) return false;
  if (!value->is_object()) {
    WrongType(key, "an object");
    return false;
  }
  entered_.insert(FullName(key));
  outside_.push_back({object_, prefix_});
  prefix_ = FullName(key) + ".";
  object_ = value;
  return true;
}

void ConfigReader::Leave() {
  std::tie(object_, prefix_) = outside_.back();
  outside_.pop_back();
}

void ConfigReader::Ignore(std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) understood_.insert(FullName(key));
}

std::string ConfigReader::Origin(const FactField& field) const {
  const std::string value = FactText(GetFact(facts_, field));
  const auto source = sources_.find(&field);
  if (source == sources_.end() || source->second.empty())
    return fmt::format("{} is {} in every {}", field.name, value, model_type());
  const std::string& key = source->second;
  const json* object = &config_;
  size_t begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != std::string::npos; begin = dot + 1)
    object = &object->at(key.substr(begin, dot - begin));
  const auto found = object->find(key.substr(begin));
  if (found == object->end())
    return fmt::format("{} is not there, for a {} that is {} {}", key, model_type(), field.name, value);
  const std::string said = JsonText(*found);
  // 500000.0 and 500000 are the same to a reader.
  const bool same = said == value || (found->is_number() && FactText(found->get<double>()) == value);
  return same ? fmt::format("{} is {}", key, said)
              : fmt::format("{} is {} ({} {})", key, said, field.name, value);
}

void ConfigReader::FindUnknownKeys(const json& object, const std::string& prefix) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (understood_.contains(name)) {
      if (entered_.contains(name)) FindUnknownKeys(value, name + ".");
      continue;
    }
    if (SaysNothing(value) || (prefix.empty() && IsInertKey(key))) continue;
    Fault(fmt::format("{} is {}, which is not understood", JsonText(name), JsonText(value)));
  }
}

std::vector<std::string> ConfigReader::TakeFaults() {
  FindUnknownKeys(config_, "");
  return std::move(faults_);
}

}  // namespace ft
