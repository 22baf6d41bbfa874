#pragma once

#include "llvm/Support/Errc.h"
#include "llvm/Support/Error.h"

namespace ft::models {

// One line for the user.
inline llvm::Error userError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::errc::invalid_argument, message);
}

} // namespace ft::models
