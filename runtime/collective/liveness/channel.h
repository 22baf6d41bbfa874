// One connection of the monitor: messages over a stream, small ones and long texts.
//
// Small messages leave in the order in which they were queued. A long text leaves in pieces, between which
// small messages go: a verdict does not wait for megabytes. Of a text no more is on its way than the other
// side's kernel takes without its process, which says what it has read: a process that is stopped would be
// taken for a host that does not answer any more (TCP_USER_TIMEOUT), were its buffer full for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "runtime/collective/net/socket.h"

namespace ft {

enum class PeerMessageType : uint8_t {
  kGoodbye = 1,     // the sender is done; its connection may close now
  kFailed = 2,      // to rank 0: the sender fails, and why
  kVerdict = 3,     // from rank 0: who was lost or failed, as a sentence
  kWish = 4,        // to rank 0: somebody wants a checkpoint (wishes.h)
  kOrder = 5,       // from rank 0: what every rank does after which step
  kOrderHeard = 6,  // to rank 0: it has arrived
  kStepTime = 7,    // to rank 0: how long the sender computed in a step (step_times.h)
  kTextBegin = 8,   // bytes of a long text, as uint64, and its head
  kTextPart = 9,    // more of it
  kTextRead = 10,   // that many bytes of parts were read, as uint32; between channels alone
  kComplaint = 11,  // to rank 0: other ranks hold the sender up (complaints.h)
};

class Channel {
 public:
  static constexpr size_t kMaxMessage = 16 << 10;  // bytes of one, beyond which it is nonsense

  using Handler = absl::FunctionRef<void(PeerMessageType type, absl::string_view text)>;

  Channel() : Channel(Fd()) {}
  explicit Channel(Fd fd);

  int fd() const { return fd_.get(); }
  bool open() const { return fd_.valid(); }
  void Close();

  // Puts a message behind those not yet sent; text is cut at kMaxMessage.
  void Queue(PeerMessageType type, absl::string_view text);

  // The same where there is room for it, else false: allocates nothing.
  bool QueueIfRoom(PeerMessageType type, absl::string_view text);

  // A text of any length with a short head. Texts leave one after the other.
  void QueueText(absl::string_view head, std::shared_ptr<const std::string> text);
  // What is left of them is not sent.
  void DropTexts() { texts_.clear(); }

  // Whether something waits to be sent, and whether it could be sent now.
  bool HasUnsent() const { return open() && (sent_ < out_.size() || !texts_.empty()); }
  bool WantsToSend() const;

  // Sends what the connection takes. After an error nothing more is sent, and Read finds the end.
  void Flush();

  // Reads what is there, up to about a megabyte, and hands on the messages in it; `handle` may queue, and
  // must not close. The connection closes at its end, on an error, and when the other side sends nonsense.
  void Read(Handler handle);

  // Why it closed: errno of what failed, 0 when the other side closed it or sent nonsense.
  int error() const { return error_; }

  // Says that nothing more will be sent.
  void FinishSending();

 private:
  struct Text {
    std::string head;
    std::shared_ptr<const std::string> bytes;
    size_t at = 0;
    bool begun = false;
  };

  bool MayGoOn() const;
  bool FillOut();
  bool Take(absl::string_view bytes, Handler handle);
  bool Parse(absl::string_view* bytes, size_t* parts, Handler handle);
  void Acknowledged(absl::string_view text);

  Fd fd_;
  std::string in_;   // the beginning of a message
  std::string out_;  // from sent_ on: not yet sent
  size_t sent_ = 0;
  std::deque<Text> texts_;
  size_t on_its_way_ = 0;  // bytes of parts that the other side has not read yet
  bool broken_ = false;    // nothing can be sent any more
  int error_ = 0;
};

}  // namespace ft
