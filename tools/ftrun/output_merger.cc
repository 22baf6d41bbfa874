#include "tools/ftrun/output_merger.h"

#include "absl/strings/str_cat.h"

namespace ft::run {
namespace {

constexpr size_t kMaxLine = 64 << 10;  // a longer one is cut, so that a rank cannot fill our memory
constexpr absl::string_view kClearToEnd = "\x1b[K";

}  // namespace

void MergedOutput::StartLine(const void* source, std::string* out) {
  if (open_ == source) {
    absl::StrAppend(out, "\r");
  } else if (open_ != nullptr) {
    absl::StrAppend(out, "\n");
  }
}

void MergedOutput::Line(const void* source, absl::string_view text) {
  std::string out;
  StartLine(source, &out);
  absl::StrAppend(&out, text, open_ == source ? kClearToEnd : "", "\n");
  open_ = nullptr;
  write_(out);
}

void MergedOutput::Progress(const void* source, absl::string_view text) {
  std::string out;
  StartLine(source, &out);
  absl::StrAppend(&out, text, kClearToEnd);
  open_ = source;
  write_(out);
}

void MergedOutput::EndLine(const void* source) {
  if (open_ != source) return;
  open_ = nullptr;
  write_("\n");
}

void LineSource::Write(absl::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n') {
      Emit(false);
      rewriting_ = false;
    } else if (c == '\r') {
      if (!line_.empty()) Emit(output_->rewrites());
      rewriting_ = true;
    } else {
      line_.push_back(c);
      if (line_.size() >= kMaxLine) Emit(false);
    }
  }
  // Text behind a \r is to be seen now, not when the next \r comes.
  if (rewriting_ && output_->rewrites() && !line_.empty())
    output_->Progress(this, absl::StrCat(prefix_, line_));
}

void LineSource::Finish() {
  if (!line_.empty()) Emit(false);
  output_->EndLine(this);
}

void LineSource::Emit(bool progress) {
  if (line_.empty() && rewriting_) {
    // "\r\n" is one line end; a line shown as progress stays.
    output_->EndLine(this);
    return;
  }
  const std::string text = absl::StrCat(prefix_, line_);
  progress ? output_->Progress(this, text) : output_->Line(this, text);
  line_.clear();
}

}  // namespace ft::run
