// The system's own calls, past the functions of this library that stand in front of them.
#pragma once

namespace ft::file_faults {

using SyscallFunction = long (*)(long number, ...);

// libc's syscall(): -1 and errno on failure.
SyscallFunction RealSyscall();

// Arguments are integers or pointers; each travels in a register. Only systems of 64 bits.
static_assert(sizeof(long) == 8 && sizeof(void*) == 8);
template <typename... Args>
long RealCall(long number, Args... args) {
  return RealSyscall()(number, (long)args...);
}

}  // namespace ft::file_faults
