#include "tools/ftc/output_and_inputs.h"

#include <sys/stat.h>

#include "fmt/format.h"
#include "runtime/base/printable.h"

namespace ftc {

std::string OverwrittenInput(const std::string& output, const std::vector<std::string>& inputs) {
  struct stat written;
  if (output.empty() || stat(output.c_str(), &written) != 0 || !S_ISREG(written.st_mode)) return "";
  for (const std::string& input : inputs) {
    struct stat read;
    if (input.empty() || stat(input.c_str(), &read) != 0) continue;
    if (read.st_dev == written.st_dev && read.st_ino == written.st_ino)
      return fmt::format("-o {} would overwrite {}, which is read: choose another name", ft::OneLine(output),
                         ft::OneLine(input));
  }
  return "";
}

}  // namespace ftc
