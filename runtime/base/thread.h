// Threads that may fail to start.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft {

// ResourceExhausted (exit status 74) where the system gives no thread: names what it was for and the limits
// that are met most (ulimit -u and -v, a container's number of processes).
absl::StatusOr<std::thread> StartThread(std::string_view purpose, std::function<void()> body);

// Whether `count` more threads could run at once, by starting and ending them: for libraries that end the
// process where they get none (libgomp). Another process may take them away afterwards.
absl::Status ProbeThreads(std::string_view purpose, int count);

// Likewise, whether `count` more processes could run, which share the limit on the number of threads with
// them and take no memory from this process: for what other processes are going to start.
absl::Status ProbeProcesses(std::string_view purpose, int count);

}  // namespace ft
