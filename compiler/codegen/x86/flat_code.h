// From an object file to code that runs wherever it is copied to.
#pragma once

#include <cstdint>
#include <string>

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace ft::compiler {

struct FlatCode {
  std::string bytes;
  llvm::StringMap<uint64_t> entries; // offsets of functions
};

/// Code and read-only data of an ELF object for x86-64, one behind the other, with what is relative to the
/// program counter filled in. Anything else that would need a linker is an error: writable data, a symbol
/// from elsewhere (a call of a library), an absolute address.
llvm::Expected<FlatCode> flatten(llvm::StringRef object);

} // namespace ft::compiler
