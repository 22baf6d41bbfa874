// Data sets in words, for people.
#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace ft {

// "corpus.txt (text, 8193 tokens, 128 sequences)", "12 files, a01.bin ... a12.bin (u16, ...)", "3 sources
// (u16 and text, ...)": the formats that occur, tokens and sequences of all files together.
std::string DataText(const Dataset& dataset);

// A line for each source where they have weights, else none: "70% from a.bin (u16, ...)", the part of the
// sequences of a run.
std::vector<std::string> SourceLines(const Dataset& dataset);

}  // namespace ft
