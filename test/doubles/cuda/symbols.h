// What the program's own symbol table tells the emulation.
#pragma once

#include <cstdint>
#include <string>

namespace ft::cuda::emulation {

// "ft::cuda::(anonymous namespace)::AddKernel<float>" for the address of a function; "a kernel" when it is
// not known.
std::string NameOf(const void* function);

// Fills the calling thread's __shared__ variables, which are the thread_local ones that live in functions of
// ft::cuda.
void SpoilStaticShared(int pattern);

// Where they lie, with what may lie between them.
struct AddressRange {
  uintptr_t begin, end;
};
AddressRange StaticShared();

// Of an address of code, as addr2line takes it.
uintptr_t OffsetInProgram(const void* code);

}  // namespace ft::cuda::emulation
