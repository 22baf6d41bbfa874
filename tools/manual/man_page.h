// A page of section 1 for man.
#pragma once

#include <string>

#include "tools/manual/command.h"
#include "tools/manual/page.h"

namespace ft::manual {

std::string ManPage(const Command& command, const Page& page, const std::string& version);

}  // namespace ft::manual
