#include "runtime/collective/liveness/channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace ft {
namespace {

// type, length of the text, text
constexpr size_t kHeaderBytes = 1 + sizeof(uint32_t);
constexpr size_t kMaxText = 16 << 10;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void Channel::Queue(PeerMessageType type, absl::string_view text) {
  text = text.substr(0, kMaxText);
  const auto size = static_cast<uint32_t>(text.size());
  out_.push_back(static_cast<char>(type));
  out_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  out_.append(text.data(), text.size());
}

void Channel::Flush() {
  while (HasUnsent()) {
    const ssize_t sent = send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      out_.erase(0, static_cast<size_t>(sent));
    } else {
      if (WouldBlock()) return;
      error_ = errno;
      Close();
      return;
    }
  }
}

std::vector<PeerMessage> Channel::Read() {
  bool ended = false;
  while (!ended) {
    char buffer[4096];
    const ssize_t received = recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (received > 0) {
      in_.append(buffer, static_cast<size_t>(received));
    } else if (received < 0 && WouldBlock()) {
      break;
    } else {
      error_ = received < 0 ? errno : 0;
      ended = true;
    }
  }
  std::vector<PeerMessage> messages;
  size_t at = 0;
  while (in_.size() - at >= kHeaderBytes) {
    uint32_t size = 0;
    std::memcpy(&size, in_.data() + at + 1, sizeof(size));
    if (size > kMaxText) {
      ended = true;
      break;
    }
    if (in_.size() - at < kHeaderBytes + size) break;
    messages.push_back({static_cast<PeerMessageType>(in_[at]), in_.substr(at + kHeaderBytes, size)});
    at += kHeaderBytes + size;
  }
  in_.erase(0, at);
  if (ended) Close();
  return messages;
}

void Channel::FinishSending() {
  if (open()) shutdown(fd_.get(), SHUT_WR);
}

}  // namespace ft
