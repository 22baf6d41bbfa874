// What ptxas makes of generated PTX, where there is one: no part of compiling, for those who look.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ft::compiler {

/// Of the entry of a module that has most.
struct PtxAssembly {
  std::string architecture; // "sm_90"
  int registers = 0;        // of a thread
  int64_t spilledBytes = 0; // of a thread, stores and loads
};

/// On PATH, beside $CUDACXX, or where the toolkit installs it.
std::optional<std::string> findPtxas();

/// For each of sm_80, sm_90 and sm_100.
llvm::Expected<std::vector<PtxAssembly>> assemble(llvm::StringRef ptx, llvm::StringRef ptxas);

} // namespace ft::compiler
