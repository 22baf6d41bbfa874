// Compares the tables of docs/train-yaml.md with the table of settings, or writes them: train_yaml_docs PAGE
// [--write]
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tools/ftc/config/configure.h"

int main(int argc, char** argv) {
  const std::string page = argc > 1 ? argv[1] : "";
  const bool write = argc > 2 && std::string(argv[2]) == "--write";
  std::stringstream stream;
  stream << std::ifstream(page).rdbuf();
  const std::string text = stream.str(), mark = "<!-- written by train_yaml_docs: do not edit below -->\n";
  const size_t at = text.find(mark);
  if (at == text.npos) return std::fprintf(stderr, "%s: no line %s", page.c_str(), mark.c_str()), 1;
  const std::string wanted = text.substr(0, at) + mark + "\n" + ftc::SettingsAsMarkdown();
  if (write) return (std::ofstream(page) << wanted).good() ? 0 : 1;
  if (text == wanted) return 0;
  std::fprintf(stderr, "%s is not what the table of settings gives; run: ninja train_yaml_reference\n",
               page.c_str());
  return 1;
}
