// What a manual says that no option does.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ft::manual {

// By the long name of an option.
using Words = std::map<std::string, std::vector<std::string>>;

struct Page {
  std::vector<std::string> description = {};                          // paragraphs, after what --help says
  std::vector<std::pair<std::string, std::string>> environment = {};  // variable, what it says
  std::vector<std::pair<std::string, std::string>> exits = {};        // status, when
  std::vector<std::pair<std::string, std::string>> examples = {};     // command, what it does
  std::vector<std::string> see_also = {};                             // "ftexec(1)", or a document
  Words words = {};                                                   // that completions offer as its value
};

}  // namespace ft::manual
