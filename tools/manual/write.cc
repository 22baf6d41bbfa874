#include "tools/manual/write.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "tools/manual/command.h"
#include "tools/manual/completions.h"
#include "tools/manual/man_page.h"

namespace ft::manual {
namespace {

bool WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::error_code ignored;  // a folder that cannot be made has no file either
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file.fail()) return true;
  PrintError("cannot write " + path.string());
  return false;
}

}  // namespace

int Write(int argc, char** argv, const Describe& describe, const Page& page) {
  if (argc != 2) return PrintError("usage: PROGRAM FOLDER"), kExitUsage;
  const std::filesystem::path folder = argv[1];
  Command command;
  describe([&](const CLI::App& app) { command = CommandOf(app); });
  AddWords(page.words, command);
  const bool written =
      WriteFile(folder / "man1" / (command.name + ".1"), ManPage(command, page, FT_VERSION)) &&
      WriteFile(folder / "bash" / command.name, BashCompletion(command)) &&
      WriteFile(folder / "zsh" / ("_" + command.name), ZshCompletion(command));
  return written ? kExitOk : kExitIo;
}

}  // namespace ft::manual
