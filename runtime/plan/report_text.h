// Memory reports as text for people: what ftc explain shows, and ftexec when there is not enough.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/plan/report.h"

namespace ft {

// "optimizer state"
const char* MemoryClassName(proto::MemoryClass memory_class);

// "optimizer_state", for what programs read.
const char* MemoryClassKey(proto::MemoryClass memory_class);

// The bytes of an arena by the keys of its classes, and "padding"; they sum to the arena.
std::vector<std::pair<std::string_view, uint64_t>> BytesByKey(const ArenaReport& arena);

// "  optimizer state         123,456     121 KiB\n"
std::string MemoryRow(const char* name, uint64_t bytes);

// The bytes of an arena by class, and their sum; `title` and the instruction of the peak stand above.
std::string ArenaTable(const char* title, const ArenaReport& arena);

// The same in one line, without classes that have nothing: "parameters 536 KiB; workspace 32.0 MiB".
std::string ArenaLine(const ArenaReport& arena);

}  // namespace ft
