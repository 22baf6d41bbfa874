// The output of all ranks on one terminal or in one file, line by line.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace ft::run {

// Where merged text goes. Knows whose unfinished line the cursor is in: a progress line that its program
// rewrites with \r.
class MergedOutput {
 public:
  // `rewrites`: the target is a terminal, where \r goes back to the start of the line; elsewhere \r ends a
  // line.
  MergedOutput(std::function<void(absl::string_view)> write, bool rewrites)
      : write_(std::move(write)), rewrites_(rewrites) {}

  bool rewrites() const { return rewrites_; }
  // A whole line of `source`, without its end.
  void Line(const void* source, absl::string_view text);
  // The present state of a line that `source` goes on rewriting.
  void Progress(const void* source, absl::string_view text);
  // If the cursor is in such a line of `source`, it stays as it is and the next one starts below.
  void EndLine(const void* source);

 private:
  void StartLine(const void* source, std::string* out);

  std::function<void(absl::string_view)> write_;
  const bool rewrites_;
  const void* open_ = nullptr;  // whose progress line the cursor is in
};

// One stream of one rank: cuts it into lines and puts a prefix before each.
class LineSource {
 public:
  LineSource(std::string prefix, MergedOutput* output) : prefix_(std::move(prefix)), output_(output) {}
  void Write(absl::string_view bytes);
  // At the end of the stream: what lacks its line end.
  void Finish();

 private:
  void Emit(bool progress);

  const std::string prefix_;
  MergedOutput* const output_;
  std::string line_;        // not yet written
  bool rewriting_ = false;  // line_ follows a \r
};

}  // namespace ft::run
