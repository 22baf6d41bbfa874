// Sleeping on a word of shared memory until another process changes it.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace ft {

// Sleeps while `*word == seen`, for at most `patience`; may return early for no reason.
void FutexWait(const std::atomic<uint32_t>* word, uint32_t seen, absl::Duration patience);

// Wakes every process and thread that sleeps on `word`.
void FutexWakeAll(const std::atomic<uint32_t>* word);

}  // namespace ft
