// Memory of each thread that multiplies.
#pragma once

namespace ft::cpu {

// kScratchBytes (loops/gemm.h) of the calling thread, aligned to 64 bytes: zero pages until they are first
// used, never allocated or given back by a kernel. What a loop leaves there is garbage to the next.
void* ThreadScratch();

}  // namespace ft::cpu
