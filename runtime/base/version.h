// Which build of which version a program is. Plans hold the version alone, so that they do not change with
// every commit.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ft {

// What a program was built with: {"CUDA", "yes"}.
using Features = std::vector<std::pair<std::string, std::string>>;

// What --version prints: "ftexec 0.1.0, commit 36982490a1b2" and a line for each feature, without a newline
// at its end. The commit is "unknown" where the sources were no clone.
std::string VersionText(const std::string& program, const Features& features);

}  // namespace ft
