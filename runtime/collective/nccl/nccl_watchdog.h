// The thread that looks after this process's NCCL communicators: collectives run on the device, where no call
// of the host notices an error, a lost peer or a deadline.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace ft::nccl {

class Watched {
 public:
  virtual ~Watched() = default;
  virtual void Watch(absl::Time now) = 0;  // from the watchdog's thread
};

class NcclWatchdog {
 public:
  // Looks every `period`, and when woken.
  explicit NcclWatchdog(absl::Duration period);
  ~NcclWatchdog();

  void Add(Watched* watched);
  // After it returns, `watched` is not being looked at any more. Not from Watch.
  void Remove(Watched* watched);

  // Look now. From any thread, at once.
  void Wake();

 private:
  void Run();

  const absl::Duration period_;
  std::mutex list_mutex_;  // held while looking
  std::vector<Watched*> list_;
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool woken_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace ft::nccl
