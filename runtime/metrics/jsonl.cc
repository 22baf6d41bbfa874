#include "runtime/metrics/jsonl.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

// A JSON object written into a given buffer. Text that does not fit is counted, not stored.
class ObjectText {
 public:
  explicit ObjectText(absl::Span<char> buffer) : buffer_(buffer) { Add("{{"); }

  template <typename IntegerOrBool>
  void Field(std::string_view name, IntegerOrBool value) {
    Add("\"{}\":{},", name, value);
  }
  void Field(std::string_view name, double value) {
    if (value == 0 && std::signbit(value)) {
      Add("\"{}\":-0.0,", name);  // "-0" would be an integer, which has no sign to lose
    } else if (std::isfinite(value)) {
      Add("\"{}\":{:.17g},", name, value);
    } else {
      Add("\"{}\":null,\"{}_nonfinite\":\"{}\",", name, name,
          std::isnan(value) ? "nan"
          : value > 0       ? "inf"
                            : "-inf");
    }
  }

  // Fields as they are.
  void Text(std::string_view fields) { Add("{}", fields); }

  // Bytes of the whole line; more than the buffer holds when it did not fit.
  size_t Close() {
    --size_;  // the last comma
    Add("}}\n");
    return size_;
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    const size_t begin = std::min(size_, buffer_.size());
    size_ +=
        fmt::format_to_n(buffer_.data() + begin, buffer_.size() - begin, format, std::forward<Args>(args)...)
            .size;
  }

  absl::Span<char> buffer_;
  size_t size_ = 0;
};

// {"step":17,...}; -1 of a line that is none of ours.
int64_t StepOfLine(std::string_view line) {
  constexpr std::string_view kBegin = "{\"step\":";
  int64_t step = 0;
  if (!line.starts_with(kBegin)) return -1;
  const auto [end, error] = std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), step);
  return error == std::errc() && *end == ',' ? step : -1;
}

bool IsPlainName(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsFile>> MetricsFile::Open(const std::string& path, OpenMode mode) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (mode == OpenMode::kTruncate ? O_TRUNC : 0);
  const int fd = open(path.c_str(), flags, 0666);
  if (fd < 0) return PosixError(errno, "open", path);
  const bool has_earlier_lines = lseek(fd, 0, SEEK_END) > 0;  // -1 of what keeps no lines, such as a pipe
  return absl::WrapUnique(new MetricsFile(path, fd, has_earlier_lines));
}

MetricsFile::~MetricsFile() { close(fd_); }

absl::Status MetricsFile::Write(const StepMetrics& metrics, absl::Span<const ExtraMetric> extra) {
  ObjectText object(absl::MakeSpan(line_));
  object.Field("step", metrics.step);
  object.Field("loss", metrics.loss);
  object.Field("grad_norm", metrics.grad_norm);
  object.Field("lr", metrics.lr);
  object.Field("tokens_per_s", metrics.tokens_per_s);
  object.Field("step_ms", metrics.step_ms);
  object.Field("arena_bytes", metrics.arena_bytes);
  object.Field("samples_per_s", metrics.samples_per_s);
  if (metrics.host_arena_bytes > 0) object.Field("host_arena_bytes", metrics.host_arena_bytes);
  if (metrics.loss_scale.has_value()) object.Field("loss_scale", *metrics.loss_scale);
  if (metrics.counted.has_value()) object.Field("counted", *metrics.counted);
  if (metrics.exposed_ms.has_value()) object.Field("exposed_ms", *metrics.exposed_ms);
  if (metrics.mfu.has_value()) object.Field("mfu", *metrics.mfu);
  if (metrics.utilization.has_value()) object.Field("utilization", *metrics.utilization);
  if (metrics.save.has_value()) {
    object.Field("save_stall_ms", metrics.save->stall_ms);
    object.Field("save_s", metrics.save->seconds);
    object.Field("save_bytes", metrics.save->bytes);
  }
  if (metrics.compute.has_value()) {
    object.Field("compute_step", metrics.compute->step);
    object.Field("compute_ms_min", metrics.compute->min_ms);
    object.Field("compute_ms_mean", metrics.compute->mean_ms);
    object.Field("compute_ms_max", metrics.compute->max_ms);
    object.Field("slowest_rank", metrics.compute->slowest_rank);
  }
  if (metrics.skipped) object.Field("skipped", true);
  object.Text(std::exchange(once_, {}));
  for (const ExtraMetric& metric : extra) {
    if (!IsPlainName(metric.name)) {
      return absl::InvalidArgumentError(fmt::format("'{}' cannot be the name of a metric", metric.name));
    }
    object.Field(metric.name, metric.value);
  }
  return WriteLine(object.Close());
}

void MetricsFile::AddOnce(std::string_view name,
                          absl::Span<const std::pair<std::string_view, uint64_t>> parts) {
  std::string object;
  for (const auto& [part, bytes] : parts)
    object += fmt::format("{}\"{}\":{}", object.empty() ? "" : ",", part, bytes);
  once_ += fmt::format("\"{}\":{{{}}},", name, object);
}

void MetricsFile::AddOnce(std::string_view name, std::string_view text) {
  once_ += fmt::format("\"{}\":\"{}\",", name, text);
}

absl::Status MetricsFile::KeepSteps(const std::string& path, int64_t first) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path, MappedFile::Access::kSequential);
  // Not there yet, or nothing that keeps lines (/dev/stdout).
  if (absl::IsNotFound(file.status()) || absl::IsInvalidArgument(file.status())) return absl::OkStatus();
  FT_RETURN_IF_ERROR(file.status());
  const absl::Span<const uint8_t> bytes = file->bytes();
  const std::string_view text(static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size());
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(begin, end + 1 - begin);
    if (StepOfLine(line) < first) kept += line;
    begin = end + 1;
  }
  return kept.size() == text.size() ? absl::OkStatus() : WriteFileAtomically(path, kept);
}

absl::Status MetricsFile::WriteEvaluation(const EvaluationMetrics& metrics) {
  ObjectText object(absl::MakeSpan(line_));
  object.Field("step", metrics.step);
  if (metrics.tokens == 0) {  // there are no means of nothing
    object.Text("\"eval_loss\":null,");
    object.Field("eval_tokens", metrics.tokens);
    return WriteLine(object.Close());
  }
  object.Field("eval_loss", metrics.loss);
  object.Field("eval_tokens", metrics.tokens);
  for (const EvaluationOutput& output : metrics.outputs) object.Field(output.key, output.value);
  return WriteLine(object.Close());
}

absl::Status MetricsFile::WriteLine(size_t bytes) {
  if (bytes > line_.size()) {
    return absl::InvalidArgumentError(fmt::format(
        "a line of '{}' would have {} bytes; at most {} are allowed", path_, bytes, line_.size()));
  }
  return WriteAll({line_.data(), bytes});
}

absl::Status MetricsFile::WriteObject(std::string_view object) {
  return WriteAll(std::string(object) + "\n");
}

absl::Status MetricsFile::WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return PosixError(errno, "write", path_);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace ft
