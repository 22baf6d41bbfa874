// The log file of a rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/rendezvous/launch_environment.h"

namespace ft {

class RankLog {
 public:
  // Makes `folder` when it is not there, and in it "rank<rank>.log". What earlier runs wrote stays:
  // `beginning`, a line without its end, is added. System errors: exit status 74; a write that fails is
  // write_error()'s.
  static absl::StatusOr<std::unique_ptr<RankLog>> Open(const std::string& folder, int rank,
                                                       const std::string& beginning);
  // Whether Open would succeed and `bytes` find room: makes the folder, leaves a log in it as it is.
  static absl::Status Check(const std::string& folder, int rank, uint64_t bytes);
  ~RankLog();
  RankLog(const RankLog&) = delete;
  RankLog& operator=(const RankLog&) = delete;

  int fd() const { return fd_; }

  // errno of writing the beginning; 0: it is there.
  int write_error() const { return write_error_; }

  // The file that Open opens.
  static std::string PathOf(const std::string& folder, int rank);

  // Whether a file of a folder of logs has a name that PathOf makes.
  static bool IsName(std::string_view name);

  // Adds a line to the log that Open would open, if it is there: for the message that ends a run.
  static void Append(const std::string& folder, int rank, const std::string& line);

 private:
  explicit RankLog(int fd) : fd_(fd) {}
  void Write(std::string_view text);

  int fd_;
  int write_error_ = 0;
};

// What a run begins with in the logs of its ranks: "2026-11-23T01:04:40Z: rank 0 of 2 begins, attempt 1, at
// step 1000; plan 0123456789abcdef". Attempts are counted by the launcher, from 0; the step is the first one
// of this run, counted from 0.
std::string BeginningOfRun(const LaunchEnvironment& environment, std::string_view plan_hash,
                           int64_t first_step, absl::Time now);

}  // namespace ft
