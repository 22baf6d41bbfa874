// The bytes of TensorBoard's event files: TFRecord frames with an Event message each.
//
// The messages are written by hand: a few fields of Event, Summary, SessionLog and TensorProto, whose numbers
// (tensorboard/compat/proto/event.proto, summary.proto, tensor.proto) can never change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ft {

// An Event and its frame, made anew for each record in buffers that are kept: what is no longer than what was
// made or reserved before allocates nothing.
class EventRecord {
 public:
  // `reserve`: bytes of a record that is made without allocating.
  explicit EventRecord(size_t reserve);

  // Each makes a whole record, valid until the next call. `wall_time`: seconds since 1970.
  std::string_view FileVersion(double wall_time);
  // What a run begins with at `step`: readers drop what an earlier run in the folder wrote from that step on.
  std::string_view SessionStart(double wall_time, int64_t step);
  // For the text plugin: one string, UTF-8, of markdown.
  std::string_view Text(double wall_time, int64_t step, std::string_view tag, std::string_view markdown);

  // A record of several scalars: AddScalar for each, then Scalars. A number is stored as a float, as every
  // reader of scalars has it; what no float can hold becomes infinite, NaN stays NaN.
  void AddScalar(std::string_view tag, double value);
  std::string_view Scalars(double wall_time, int64_t step);

 private:
  void BeginEvent(double wall_time, int64_t step);
  void AddValue();  // value_, to summary_
  std::string_view Summary(double wall_time, int64_t step);
  std::string_view Frame();  // around event_

  std::string value_, summary_, event_, record_;
};

// CRC-32C (Castagnoli) of `bytes`, masked as TFRecord wants it: rotated right by 15 bits, plus 0xa282ead8.
uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace ft
