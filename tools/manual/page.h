// What a manual says that no option does.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ft::manual {

struct Page {
  std::vector<std::string> description = {};                          // paragraphs, after what --help says
  std::vector<std::pair<std::string, std::string>> environment = {};  // variable, what it says
  std::vector<std::pair<std::string, std::string>> exits = {};        // status, when
  std::vector<std::pair<std::string, std::string>> examples = {};     // command, what it does
  std::vector<std::string> see_also = {};                             // "ftexec(1)", or a document
};

}  // namespace ft::manual
