// Runs forged instructions on a device's kernels, built with AddressSanitizer and UndefinedBehaviorSanitizer.
#pragma once

#include <string>
#include <vector>

#include "test/conformance/bench.h"

namespace ft::fuzz {

// Parses the command line, tries, prints "kernel fuzzing on <device>: N tries of M kernels ..." and returns
// the exit status. What a kernel takes is run with operands that are exactly as long as they say. A report of
// a sanitizer, or a try of more than a minute, ends the program and names the try. `kernels`: all that the
// device has; each must have a seed, and take it as it is.
int Main(int argc, char** argv, conformance::Bench& bench, const std::vector<std::string>& kernels);

}  // namespace ft::fuzz
