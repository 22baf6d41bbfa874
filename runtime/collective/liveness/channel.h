// One connection of the monitor: small messages over a stream.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/collective/net/socket.h"

namespace ft {

enum class PeerMessageType : uint8_t {
  kGoodbye = 1,  // the sender is done; its connection may close now
  kFailed = 2,   // to rank 0: the sender fails, and why
  kVerdict = 3,  // from rank 0: who was lost or failed, as a sentence
};

struct PeerMessage {
  PeerMessageType type;
  std::string text;
};

class Channel {
 public:
  Channel() = default;
  explicit Channel(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  bool open() const { return fd_.valid(); }
  void Close() { fd_.Reset(); }

  // Puts a message behind those not yet sent; text is cut at some kilobytes.
  void Queue(PeerMessageType type, absl::string_view text);
  bool HasUnsent() const { return open() && !out_.empty(); }

  // Sends what the connection takes; it closes on an error.
  void Flush();

  // Reads what is there and returns the messages in it. The connection closes at its end, on an error, and
  // when the other side sends nonsense.
  std::vector<PeerMessage> Read();

  // Why it closed: errno of what failed, 0 when the other side closed it or sent nonsense.
  int error() const { return error_; }

  // Says that nothing more will be sent.
  void FinishSending();

 private:
  Fd fd_;
  std::string in_;
  std::string out_;
  int error_ = 0;
};

}  // namespace ft
