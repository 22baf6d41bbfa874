// An event file of TensorBoard: numbers and texts over the steps of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/metrics/event_record.h"

namespace ft {

struct EventScalar {
  std::string_view tag;  // "train/loss": what stands before the slash is a group of curves
  double value;
};

struct EventFileOptions {
  // The first step that this run computes. What earlier runs wrote into the folder from that step on is no
  // longer shown: it is computed again.
  int64_t first_step = 0;
  // Seconds since 1970; null: the system's clock. Tests give their own.
  double (*wall_clock)() = nullptr;
};

// Names, order and contents are as TensorBoard's readers want them:
//   - A run writes a new file, "events.out.tfevents.<seconds>.<host>.<pid>.<n>". The files of a folder are
//     read in the order of their names, so the seconds are those of now but at least one more than those of
//     any file that is there: clocks of hosts differ, and a run may begin in the second in which one ended.
//   - Every file begins with its version and a SessionLog START at the run's first step. A reader takes the
//     first START it sees for the beginning and drops what it knows from that step on at every further one;
//     so a file without would be mixed with the next one's curves.
//   - A record is handed to the system at once, in one call. A file that ends in the middle of a record (the
//     process was killed) is read up to there.
//
// After a write that failed (a full disk) the file is cut to its last whole record, and nothing more is
// written: later records behind a torn one could not be read.
class EventFile {
 public:
  // In a folder that exists. Errors: those of opening the file, exit status 74; what fails while the first
  // records are written is status()'s.
  static absl::StatusOr<std::unique_ptr<EventFile>> Open(const std::string& folder,
                                                         const EventFileOptions& options = {});

  // Whether Open would find a place and room for `bytes`. Leaves nothing behind.
  static absl::Status Check(const std::string& folder, uint64_t bytes);

  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // `step` is the x axis. Numbers that are not finite are written as they are. Allocates nothing as long as
  // the tags of a call have less than kReserved bytes together.
  void WriteScalars(int64_t step, absl::Span<const EventScalar> scalars);

  // A text in markdown, UTF-8 (markdown.h); shown in the tab of texts.
  void WriteText(int64_t step, std::string_view tag, std::string_view markdown);

  // The first write that failed; nothing was written since. Exit status 74.
  const absl::Status& status() const { return status_; }

  const std::string& path() const { return path_; }

  static constexpr size_t kReserved = 4096;

 private:
  EventFile(std::string path, int fd, double (*wall_clock)())
      : path_(std::move(path)), fd_(fd), wall_clock_(wall_clock), record_(kReserved) {}
  void Write(std::string_view record);

  std::string path_;
  int fd_;
  double (*wall_clock_)();
  EventRecord record_;
  int64_t size_ = 0;  // bytes of whole records
  absl::Status status_;
};

}  // namespace ft
