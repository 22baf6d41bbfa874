#include "runtime/device/kernel.h"

#include "absl/status/status.h"
#include "fmt/format.h"

namespace ft {
namespace {

const KernelAttributes::Value* FindValue(
    const std::vector<std::pair<std::string, KernelAttributes::Value>>& entries, std::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

absl::Status Missing(std::string_view name, std::string_view kind) {
  return absl::InvalidArgumentError(fmt::format("attribute '{}' is missing; it must be {}", name, kind));
}

absl::Status WrongType(std::string_view name, std::string_view kind) {
  return absl::InvalidArgumentError(fmt::format("attribute '{}' must be {}", name, kind));
}

template <typename T>
absl::StatusOr<T> Get(const KernelAttributes::Value* value, std::string_view name, std::string_view kind) {
  if (value == nullptr) return Missing(name, kind);
  if (const T* typed = std::get_if<T>(value)) return *typed;
  return WrongType(name, kind);
}

}  // namespace

absl::StatusOr<int64_t> KernelAttributes::Int(std::string_view name) const {
  return Get<int64_t>(FindValue(entries_, name), name, "an integer");
}

absl::StatusOr<double> KernelAttributes::Float(std::string_view name) const {
  const Value* value = FindValue(entries_, name);
  if (value != nullptr) {
    if (const int64_t* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  }
  return Get<double>(value, name, "a number");
}

absl::StatusOr<std::string> KernelAttributes::String(std::string_view name) const {
  return Get<std::string>(FindValue(entries_, name), name, "a string");
}

absl::StatusOr<std::vector<int64_t>> KernelAttributes::Ints(std::string_view name) const {
  return Get<std::vector<int64_t>>(FindValue(entries_, name), name, "a list of integers");
}

absl::StatusOr<std::vector<double>> KernelAttributes::Reals(std::string_view name) const {
  return Get<std::vector<double>>(FindValue(entries_, name), name, "a list of numbers");
}

bool KernelAttributes::Has(std::string_view name) const { return FindValue(entries_, name) != nullptr; }

KernelFactory KernelRegistry::Find(std::string_view name) const {
  for (const auto& [key, factory] : kernels_) {
    if (key == name) return factory;
  }
  return nullptr;
}

std::vector<std::string> KernelRegistry::Names() const {
  std::vector<std::string> names;
  names.reserve(kernels_.size());
  for (const auto& entry : kernels_) names.push_back(entry.first);
  return names;
}

}  // namespace ft
