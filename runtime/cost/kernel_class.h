// What kind of work a kernel does. Its time is reckoned by this, and what it moves is counted by this.
#pragma once

#include <string_view>

namespace ft {

enum class KernelClass {
  kProduct,
  kAttention,
  kHead,       // the loss of logits that it makes itself
  kLookUp,     // of rows of a table, and its gradient
  kUpdate,     // of parameters by the optimizer
  kGenerated,  // a cluster
  kReduction,
  kMemory,  // anything else: it moves elements
};

// By what the kernel's name begins with.
KernelClass KernelClassOf(std::string_view kernel);

}  // namespace ft
