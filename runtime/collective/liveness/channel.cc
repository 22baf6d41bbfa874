#include "runtime/collective/liveness/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ft {
namespace {

// type, length of the text, text
constexpr size_t kHeaderBytes = 1 + sizeof(uint32_t);
constexpr size_t kPart = Channel::kMaxMessage;
// Of a text, on its way at a time: fits into the smallest buffer that KeepAlive (star.cc) leaves a socket.
constexpr size_t kWindow = 4 * kPart;
// Room in out_ from the start: a part and some hundred small messages.
constexpr size_t kRoom = kHeaderBytes + kPart + (4 << 10);
constexpr int kReadsAtOnce = 16;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

template <typename T>
absl::string_view BytesOf(const T& value) {
  return absl::string_view(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

Channel::Channel(Fd fd) : fd_(std::move(fd)) {
  if (!open()) return;
  out_.reserve(kRoom);
  in_.reserve(256);
}

void Channel::Close() {
  fd_.Reset();
  out_.clear();
  sent_ = 0;
  texts_.clear();
}

void Channel::Queue(PeerMessageType type, absl::string_view text) {
  if (broken_ || !open()) return;
  text = text.substr(0, kMaxMessage);
  out_.push_back(static_cast<char>(type));
  const auto size = static_cast<uint32_t>(text.size());
  out_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  out_.append(text.data(), text.size());
}

bool Channel::QueueIfRoom(PeerMessageType type, absl::string_view text) {
  if (out_.size() + kHeaderBytes + text.size() > kRoom) return false;
  Queue(type, text);
  return true;
}

void Channel::QueueText(absl::string_view head, std::shared_ptr<const std::string> text) {
  if (broken_ || !open()) return;
  texts_.push_back({.head = std::string(head), .bytes = std::move(text)});
}

// Whether the first text may send something.
bool Channel::MayGoOn() const { return !texts_.empty() && (!texts_.front().begun || on_its_way_ < kWindow); }

bool Channel::WantsToSend() const { return open() && !broken_ && (sent_ < out_.size() || MayGoOn()); }

// Whether out_ has something to send; takes from the first text when all else has left.
bool Channel::FillOut() {
  if (!open() || broken_) return false;
  if (sent_ < out_.size()) return true;
  out_.clear();
  sent_ = 0;
  if (!MayGoOn()) return false;
  Text& text = texts_.front();
  if (!text.begun) {
    text.begun = true;
    std::string begin(BytesOf(static_cast<uint64_t>(text.bytes->size())));
    Queue(PeerMessageType::kTextBegin, begin += text.head);
  } else {
    const size_t part = std::min({kPart, text.bytes->size() - text.at, kWindow - on_its_way_});
    Queue(PeerMessageType::kTextPart, absl::string_view(*text.bytes).substr(text.at, part));
    text.at += part;
    on_its_way_ += part;
  }
  if (text.at == text.bytes->size()) texts_.pop_front();
  return true;
}

void Channel::Flush() {
  while (FillOut()) {
    const ssize_t sent = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent >= 0) {
      sent_ += static_cast<size_t>(sent);
    } else if (WouldBlock()) {
      return;
    } else {
      // The other side's last words may still be there to be read.
      error_ = errno;
      broken_ = true;
      out_.clear();
      sent_ = 0;
      texts_.clear();
    }
  }
}

void Channel::Read(Handler handle) {
  char buffer[64 << 10];
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t received = recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (received < 0 && WouldBlock()) return;
    if (received < 0) error_ = errno;
    if (received > 0 && Take(absl::string_view(buffer, static_cast<size_t>(received)), handle)) continue;
    Close();
    return;
  }
}

// False: nonsense.
bool Channel::Take(absl::string_view bytes, Handler handle) {
  size_t parts = 0;
  bool sense = false;
  if (in_.empty()) {
    sense = Parse(&bytes, &parts, handle);
    in_.assign(bytes.data(), bytes.size());
  } else {
    in_.append(bytes.data(), bytes.size());
    absl::string_view rest = in_;
    sense = Parse(&rest, &parts, handle);
    in_.erase(0, in_.size() - rest.size());
  }
  if (parts > 0) Queue(PeerMessageType::kTextRead, BytesOf(static_cast<uint32_t>(parts)));
  return sense;
}

// Takes whole messages from the beginning of `bytes`, and counts the bytes of parts.
bool Channel::Parse(absl::string_view* bytes, size_t* parts, Handler handle) {
  while (bytes->size() >= kHeaderBytes) {
    const auto type = static_cast<PeerMessageType>(bytes->front());
    uint32_t size = 0;
    std::memcpy(&size, bytes->data() + 1, sizeof(size));
    if (type < PeerMessageType::kGoodbye || type > PeerMessageType::kComplaint || size > kMaxMessage)
      return false;
    if (bytes->size() - kHeaderBytes < size) return true;
    const absl::string_view text = bytes->substr(kHeaderBytes, size);
    bytes->remove_prefix(kHeaderBytes + size);
    if (type == PeerMessageType::kTextRead) {
      Acknowledged(text);
      continue;
    }
    if (type == PeerMessageType::kTextPart) *parts += size;
    handle(type, text);
  }
  return true;
}

void Channel::Acknowledged(absl::string_view text) {
  uint32_t bytes = 0;
  if (text.size() != sizeof(bytes)) return;
  std::memcpy(&bytes, text.data(), sizeof(bytes));
  on_its_way_ -= std::min<size_t>(on_its_way_, bytes);
}

void Channel::FinishSending() {
  if (open()) shutdown(fd_.get(), SHUT_WR);
}

}  // namespace ft
