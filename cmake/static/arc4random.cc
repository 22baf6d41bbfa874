// Debian's libstdc++ asks glibc 2.36 for this (std::random_device). Defined here, a program linked with it
// also starts where glibc is 2.35, on Ubuntu 22.04.
#include <sys/random.h>

#include <cstdint>

extern "C" uint32_t arc4random() noexcept {
  uint32_t value = 0;
  // Fails only without the system call, which is older than any driver for our GPUs.
  if (getentropy(&value, sizeof(value)) != 0) value = 0;
  return value;
}
