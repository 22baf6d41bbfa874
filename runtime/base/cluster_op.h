// What device code knows of clusters (cluster.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ft {

enum class ClusterOpKind : uint8_t {
  kElementwise,  // a function of the operands, with parameters
  kConvert,      // operand 0 in another type: ft.convert, or a cast between floats
  kFill,         // the number parameters[0]
  kReduce,       // a reduction over the columns of operand 0
  kRandomBits,   // 32 random bits; operand 0 is the state of the generator
  kIota,         // the number of the element of a place
};

inline constexpr int64_t kClusterLanes = 64;
inline constexpr int64_t kRandomStateNumbers = 3;
// Of a body; whoever walks one has room for as many. Values include reads.
inline constexpr size_t kMaxClusterValues = 128;
inline constexpr size_t kMaxClusterInputs = 24;
inline constexpr size_t kMaxClusterReads = 48;
inline constexpr size_t kMaxClusterSteps = 8;  // of a place
inline constexpr size_t kMaxClusterOutputs = 32;
inline constexpr size_t kMaxClusterResults = 12;
inline constexpr size_t kMaxClusterDraws = 8;  // ops of random bits and iotas

}  // namespace ft
