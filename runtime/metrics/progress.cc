#include "runtime/metrics/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

namespace ft {
namespace {

constexpr double kRepaintSeconds = 0.1;
constexpr double kLineSeconds = 1.0;
constexpr size_t kMaxColumns = 99;   // a longer line would wrap, and "\r" would not get back to its begin
constexpr size_t kMaxInLines = 160;  // where nothing is painted over
constexpr std::string_view kEraseToEndOfLine = "\x1b[K";

double MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A line in a buffer of its own: nothing is allocated. What does not fit is cut off.
class Line {
 public:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    const size_t room = sizeof(text_) - size_;
    size_ += std::min(room, fmt::format_to_n(text_ + size_, room, format, std::forward<Args>(args)...).size);
  }

  void CutTo(size_t bytes) { size_ = std::min(size_, bytes); }

  std::string_view text() const { return {text_, size_}; }

 private:
  char text_[512];
  size_t size_ = 0;
};

// Decimals where they say something, else an exponent, so that the width stays bounded.
void AddNumber(Line* line, std::string_view label, double value) {
  if (std::fabs(value) < 1e3) {
    line->Add("{} {:.4f}  ", label, value);
  } else {
    line->Add("{} {:.2e}  ", label, value);
  }
}

void AddRate(Line* line, double per_s, bool counts_tokens) {
  const char* unit = counts_tokens ? "tok" : "ex";
  if (per_s < 1e5) {
    line->Add("{:.0f} {}/s  ", per_s, unit);
  } else {
    line->Add("{:.0f}k {}/s  ", per_s / 1e3, unit);
  }
}

void AddStepTime(Line* line, double ms) {
  if (ms < 1e4) {
    line->Add("{:.1f} ms  ", ms);
  } else {
    line->Add("{:.1f} s  ", ms / 1e3);
  }
}

// What is known on some devices only; on a terminal it is what gets cut off.
void AddDevice(Line* line, const StepMetrics& metrics) {
  if (metrics.mfu.has_value()) line->Add("  mfu {:.1f}%", *metrics.mfu * 100);
  if (metrics.exposed_ms.value_or(0) >= 0.05) line->Add("  exposed {:.1f} ms", *metrics.exposed_ms);
  if (metrics.utilization.has_value()) line->Add("  busy {:.0f}%", *metrics.utilization * 100);
}

void AddTimeLeft(Line* line, double seconds) {
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 3.6e8));
  if (whole >= 100 * 3600) {
    line->Add("left {} days", whole / 86400);
  } else if (whole >= 3600) {
    line->Add("left {}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    line->Add("left {}:{:02}", whole / 60, whole % 60);
  }
}

}  // namespace

absl::StatusOr<ProgressMode> ParseProgressMode(std::string_view word) {
  if (word == "auto") return ProgressMode::kAuto;
  if (word == "on") return ProgressMode::kOn;
  if (word == "off") return ProgressMode::kOff;
  return absl::InvalidArgumentError(fmt::format("unknown progress mode '{}'; choose auto, on or off", word));
}

Progress::Progress(int fd, ProgressMode mode, int64_t total_steps, Clock clock)
    : fd_(fd), total_(total_steps), clock_(clock != nullptr ? clock : MonotonicSeconds) {
  if (mode == ProgressMode::kOff) {
    style_ = Style::kNone;
  } else {
    style_ = mode == ProgressMode::kOn || isatty(fd) ? Style::kInPlace : Style::kLines;
  }
}

Progress::~Progress() { Finish(); }

void Progress::Update(const StepMetrics& metrics) {
  if (style_ == Style::kNone) return;
  const double now = clock_();
  const bool first = !any_, last = metrics.step + 1 >= total_;
  if (first) {
    any_ = true;
    first_step_ = metrics.step;
    first_done_at_ = now;
  }
  newest_ = metrics;
  pending_ = true;
  const double interval = style_ == Style::kInPlace ? kRepaintSeconds : kLineSeconds;
  if (first || last || now - shown_at_ >= interval) Show(now);
}

void Progress::ShowEvaluation(const EvaluationMetrics& metrics) {
  if (style_ == Style::kNone) return;
  Finish();
  Line line;
  line.Add("step {}/{}  ", metrics.step + 1, total_);
  AddNumber(&line, "eval loss", metrics.loss);
  for (const EvaluationOutput& output : metrics.outputs) {
    if (line.text().size() < kMaxInLines) AddNumber(&line, output.name, output.value);
  }
  line.Add("over {} {}\n", metrics.tokens, metrics.counted);
  Write(line.text());
}

void Progress::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (write_error_ == 0) write_error_ = written == 0 ? EIO : errno;
      return;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

double Progress::SecondsLeft(double now) const {
  const int64_t timed = newest_.step - first_step_;
  const double per_step =
      timed > 0 ? (now - first_done_at_) / static_cast<double>(timed) : newest_.step_ms / 1000;
  return per_step * static_cast<double>(total_ - newest_.step - 1);
}

void Progress::Show(double now) {
  Line line;
  if (style_ == Style::kInPlace) line.Add("\r");
  line.Add("step {}/{}  ", newest_.step + 1, total_);
  AddNumber(&line, "loss", newest_.loss);
  AddNumber(&line, "grad", newest_.grad_norm);
  if (newest_.skipped) line.Add("not applied  ");
  line.Add("lr {:.1e}  ", newest_.lr);
  AddRate(&line, newest_.tokens_per_s, newest_.counts_tokens);
  AddStepTime(&line, newest_.step_ms);
  AddTimeLeft(&line, SecondsLeft(now));
  AddDevice(&line, newest_);
  line.CutTo(style_ == Style::kInPlace ? kMaxColumns + 1 : kMaxInLines);  // "\r" takes no column
  if (style_ == Style::kInPlace) {
    line.Add("{}", kEraseToEndOfLine);
    line_open_ = true;
  } else {
    line.Add("\n");
  }
  Write(line.text());
  shown_at_ = now;
  pending_ = false;
}

void Progress::Finish() {
  // On a terminal a line is open already and may be stale; elsewhere a run that stops early still shows its
  // last step.
  if (pending_) Show(clock_());
  if (line_open_) {
    Line line;
    line.Add("\n");
    Write(line.text());
    line_open_ = false;
  }
}

}  // namespace ft
