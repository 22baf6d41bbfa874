#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "runtime/base/posix_error.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

constexpr char kProgram[] = "ft-tokenize";

}  // namespace

// The program is the Python package's: it takes this one's place.
int Run(const TokenizeCommand& command) {
  std::vector<std::string> words = command.arguments;
  words.insert(words.begin(), kProgram);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(kProgram, argv.data());
  if (errno == ENOENT)
    return FailUsage(
        fmt::format("there is no program {} on PATH, which reads text; install the wheel of ft with its "
                    "extra tokenize, or of this project's folder: pip install 'tools/python[tokenize]'",
                    kProgram));
  return Fail(ft::PosixError(errno, "start", kProgram));
}

}  // namespace ftc
