// A small process that outlives ftrun by an instant: should ftrun be killed, it kills the process groups of
// all ranks.
#pragma once

#include <sys/types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/collective/net/socket.h"

namespace ft::run {

class Guardian {
 public:
  // Forks; call it before any thread is started, with the signals blocked that must not end it.
  static absl::StatusOr<std::unique_ptr<Guardian>> Start();
  ~Guardian();

  // From now on `group` dies with this process, until it is forgotten.
  void Watch(pid_t group) { Tell(group); }
  void Forget(pid_t group) { Tell(-group); }

 private:
  Guardian(pid_t pid, Fd words) : pid_(pid), words_(std::move(words)) {}
  void Tell(pid_t word);

  const pid_t pid_;
  Fd words_;
};

}  // namespace ft::run
