#include "runtime/checkpoint/safetensors_index.h"

#include <fmt/format.h>

#include "absl/container/flat_hash_set.h"
#include "runtime/checkpoint/strict_sax.h"

namespace ft {
namespace {

// Accepts {"weight_map": {TENSOR: FILE, ...}, ...}; whatever else is in the object is passed over.
class IndexSax : public StrictSax {
 public:
  std::vector<std::pair<std::string, std::string>> weight_map;

  bool null() override { return Scalar("null"); }
  bool boolean(bool) override { return Scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return Scalar("a number"); }
  bool number_unsigned(number_unsigned_t) override { return Scalar("a number"); }
  bool number_float(number_float_t, const string_t&) override { return Scalar("a number"); }

  bool string(string_t& text) override {
    if (!in_map_) return Scalar("a string");
    if (text.empty() || text == "." || text == ".." || text.find('/') != std::string::npos ||
        text.find('\0') != std::string::npos) {
      return Fail(
          fmt::format("puts tensor '{}' into '{}', which is not the name of a file beside it", key_, text));
    }
    weight_map.emplace_back(key_, text);
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == 1 || in_map_) key_ = name;
    if (in_map_ && !names_.insert(name).second) return Fail(fmt::format("names tensor '{}' twice", name));
    return true;
  }

  bool start_object(size_t) override {
    if (in_map_) return Unexpected("an object");
    if (depth_ == 1 && key_ == "weight_map") in_map_ = true;
    ++depth_;
    return true;
  }

  bool end_object() override {
    --depth_;
    if (depth_ == 1) in_map_ = false;
    return true;
  }

  bool start_array(size_t) override {
    if (in_map_ || depth_ == 0) return Unexpected("an array");
    ++depth_;
    return true;
  }

  bool end_array() override {
    --depth_;
    return true;
  }

 protected:
  std::string Where() const override {
    return in_map_ ? fmt::format("as file of tensor '{}'", key_) : "where an object should begin";
  }

 private:
  bool Scalar(std::string_view what) { return in_map_ || depth_ == 0 ? Unexpected(what) : true; }

  int depth_ = 0;
  bool in_map_ = false;
  std::string key_;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseSafetensorsIndex(
    std::string_view json, const std::string& file) {
  IndexSax sax;
  if (!ParseStrictly(json, &sax)) {
    return absl::InvalidArgumentError(fmt::format("'{}': the index {}", file, sax.error()));
  }
  if (sax.weight_map.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': the index has no weight_map, or an empty one", file));
  }
  return std::move(sax.weight_map);
}

}  // namespace ft
