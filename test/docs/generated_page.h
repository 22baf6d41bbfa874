// A page of docs/ that a program of the tests makes: PROGRAM PAGE compares, PROGRAM PAGE --write writes.
#pragma once

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace ft {

// What is there up to and including `mark` stays; none: the whole page is made. The exit status.
inline int GeneratedPage(int argc, char** argv, const std::string& made, const std::string& mark = "") {
  const std::string path = argc > 1 ? argv[1] : "";
  std::stringstream stream;
  stream << std::ifstream(path).rdbuf();
  const std::string present = stream.str();
  const size_t at = mark.empty() ? 0 : present.find(mark);
  if (at == present.npos) return std::fprintf(stderr, "%s: no line %s\n", path.c_str(), mark.c_str()), 1;
  const std::string wanted = mark.empty() ? made : present.substr(0, at + mark.size()) + made;
  if (argc > 2 && std::string(argv[2]) == "--write") return (std::ofstream(path) << wanted).good() ? 0 : 1;
  if (present == wanted) return 0;
  std::fprintf(stderr, "%s is not what its table gives; run: ninja -C build reference_docs\n", path.c_str());
  return 1;
}

}  // namespace ft
