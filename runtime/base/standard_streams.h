// Standard input, output and error of a program.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace ft {

// To be called first in main: a standard stream that was closed (`program >&-`) would hand its descriptor to
// the next file that is opened, and what is printed would go into that file. Fills such places with
// descriptors whose use is an error, as before.
void HoldStandardDescriptors();

// Likewise: a write beyond the limit on the size of files (ulimit -f) is an error, EFBIG, as one to a full
// disk is, and no longer a signal that ends the program. Programs that are started inherit this.
void LimitedFilesAreErrors();

// All of `text`, printable (printable.h), on standard output, flushed. Errors: PosixError's (exit status 74).
absl::Status PrintOut(std::string_view text);

// `line` as OneLine (printable.h) has it, and its end, on standard error: messages quote what stands in
// files, and no program prints one in another way. Nothing can be done when that fails.
void PrintError(std::string_view line);

}  // namespace ft
