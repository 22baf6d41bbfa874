// Memory reports as text for people: what ftc explain shows, and ftexec when there is not enough.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/report.h"

namespace ft {

// "optimizer state"
const char* MemoryClassName(proto::MemoryClass memory_class);

// "  optimizer state         123,456     121 KiB\n"
std::string MemoryRow(const char* name, uint64_t bytes);

// The bytes of an arena by class, and their sum; `title` and the instruction of the peak stand above.
std::string ArenaTable(const char* title, const ArenaReport& arena);

}  // namespace ft
