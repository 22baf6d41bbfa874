// Standard input, output and error of a program.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ft {

// To be called first in main: a standard stream that was closed (`program >&-`) would hand its descriptor to
// the next file that is opened, and what is printed would go into that file. Fills such places with
// descriptors whose use is an error, as before.
void HoldStandardDescriptors();

// Likewise: a write beyond the limit on the size of files (ulimit -f) is an error, EFBIG, as one to a full
// disk is, and no longer a signal that ends the program. Programs that are started inherit this.
void LimitedFilesAreErrors();

// All of `text` on standard output, flushed. Errors: PosixError's (exit status 74).
absl::Status PrintOut(std::string_view text);

// `line` and its end on standard error. Nothing can be done when that fails.
void PrintError(const std::string& line);

// `text` on one line, control characters escaped: messages quote names from files.
std::string OneLine(absl::string_view text);

}  // namespace ft
