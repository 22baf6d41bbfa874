// What embed_targets writes.
#pragma once

#include <cstddef>

namespace ft {

// A proto::Target, serialised.
struct EmbeddedTarget {
  const char* bytes;
  size_t size;
};

extern const EmbeddedTarget kEmbeddedTargets[];
extern const int kNumEmbeddedTargets;

}  // namespace ft
