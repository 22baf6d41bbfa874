// The log file of a rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft {

class RankLog {
 public:
  // Makes `folder` when it is not there, and in it "rank<rank>.log", emptied. System errors: exit status 74.
  static absl::StatusOr<std::unique_ptr<RankLog>> Open(const std::string& folder, int rank);
  // Whether Open would succeed and `bytes` find room: makes the folder, leaves a log in it as it is.
  static absl::Status Check(const std::string& folder, int rank, uint64_t bytes);
  ~RankLog();
  RankLog(const RankLog&) = delete;
  RankLog& operator=(const RankLog&) = delete;

  int fd() const { return fd_; }

  // The file that Open opens.
  static std::string PathOf(const std::string& folder, int rank);

  // Adds a line to the log that Open would open, if it is there: for the message that ends a run.
  static void Append(const std::string& folder, int rank, const std::string& line);

 private:
  explicit RankLog(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace ft
