// The log file of a rank.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace ft {

class RankLog {
 public:
  // Makes `folder` when it is not there, and in it "rank<rank>.log", emptied. System errors: exit status 74.
  static absl::StatusOr<std::unique_ptr<RankLog>> Open(const std::string& folder, int rank);
  ~RankLog();
  RankLog(const RankLog&) = delete;
  RankLog& operator=(const RankLog&) = delete;

  int fd() const { return fd_; }

  // Adds a line to the log that Open would open, if it is there: for the message that ends a run.
  static void Append(const std::string& folder, int rank, const std::string& line);

 private:
  explicit RankLog(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace ft
