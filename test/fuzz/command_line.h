// What a fuzzer is asked for.
#pragma once

#include <cstdint>
#include <optional>

namespace ft::fuzz {

struct Wanted {
  int64_t tries = 1 << 30;  // at most
  double seconds = 25;      // at most
  uint64_t seed = 1;        // of the random numbers
  int64_t first = 0;        // number of the first try
};

// Nothing, or the status to exit with, after --help or an error, which is printed.
std::optional<int> ParseCommandLine(int argc, char** argv, Wanted& wanted);

}  // namespace ft::fuzz
