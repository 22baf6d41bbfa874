#include "runtime/data/pixel_scale.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

using PixelJson = nlohmann::json;

class PixelConfig {
 public:
  PixelConfig(const PixelJson& config, const std::string& path) : config_(config), path_(path) {}

  template <typename... Args>
  absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(
        fmt::format("'{}': {}", path_, fmt::format(format, std::forward<Args>(args)...)));
  }

  absl::StatusOr<bool> Flag(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return true;
    if (!found->is_boolean()) return Invalid("'{}' is neither true nor false", key);
    return found->get<bool>();
  }

  absl::StatusOr<float> Number(const PixelJson& value, const char* key) const {
    const double number = value.is_number() ? value.get<double>() : NAN;
    if (!std::isfinite(static_cast<float>(number))) return Invalid("'{}' is no number", key);
    return static_cast<float>(number);
  }

  absl::StatusOr<std::vector<float>> Numbers(const char* key, int64_t channels) const {
    const auto found = config_.find(key);
    if (found == config_.end()) return Invalid("it has no '{}'; say it, or do_normalize false", key);
    std::vector<float> numbers;
    if (!found->is_array()) {
      FT_ASSIGN_OR_RETURN(const float number, Number(*found, key));
      return std::vector<float>(static_cast<size_t>(channels), number);
    }
    if (static_cast<int64_t>(found->size()) != channels)
      return Invalid("'{}' has {} numbers for pictures of {} channels", key, found->size(), channels);
    for (const PixelJson& value : *found) {
      FT_ASSIGN_OR_RETURN(numbers.emplace_back(), Number(value, key));
    }
    return numbers;
  }

  absl::StatusOr<float> Factor() const {
    FT_ASSIGN_OR_RETURN(const bool rescales, Flag("do_rescale"));
    const auto found = config_.find("rescale_factor");
    if (!rescales) return 1.0F;
    return found == config_.end() ? absl::StatusOr<float>(1.0F / 255) : Number(*found, "rescale_factor");
  }

 private:
  const PixelJson& config_;
  const std::string& path_;
};

}  // namespace

absl::StatusOr<PixelScale> PixelScale::Read(const std::string& path, int64_t channels) {
  FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kSequential));
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const PixelJson json =
      PixelJson::parse(text, text + file.bytes().size(), nullptr, /*allow_exceptions=*/false);
  const PixelConfig config(json, path);
  if (!json.is_object()) return config.Invalid("it holds no JSON object");
  FT_ASSIGN_OR_RETURN(const float factor, config.Factor());
  FT_ASSIGN_OR_RETURN(const bool normalizes, config.Flag("do_normalize"));
  std::vector<float> mean(static_cast<size_t>(channels), 0.0F),
      deviation(static_cast<size_t>(channels), 1.0F);
  if (normalizes) {
    FT_ASSIGN_OR_RETURN(mean, config.Numbers("image_mean", channels));
    FT_ASSIGN_OR_RETURN(deviation, config.Numbers("image_std", channels));
  }
  PixelScale scale;
  for (size_t c = 0; c < mean.size(); ++c) {
    if (!(deviation[c] > 0))
      return config.Invalid("'image_std' has {}, which nothing can be divided by", deviation[c]);
    std::array<float, 256>& table = scale.tables_.emplace_back();
    for (size_t x = 0; x < table.size(); ++x) {
      const float scaled = static_cast<float>(x) * factor;
      table[x] = (scaled - mean[c]) / deviation[c];
    }
  }
  return scale;
}

void PixelScale::Scale(const uint8_t* bytes, int64_t count, float* out) const {
  const int64_t each = count / static_cast<int64_t>(tables_.size());
  for (const std::array<float, 256>& table : tables_) {
    for (int64_t i = 0; i < each; ++i) out[i] = table[bytes[i]];
    bytes += each;
    out += each;
  }
}

}  // namespace ft
