// An output that would replace what it is made from.
#pragma once

#include <string>
#include <vector>

namespace ftc {

// What is wrong with writing to `output`: that it is one of the files that are read (the same device and
// inode, so by any name and through links); empty where nothing is. Empty paths and what is no regular file
// do not count.
std::string OverwrittenInput(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace ftc
