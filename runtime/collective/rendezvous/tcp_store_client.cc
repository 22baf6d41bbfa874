#include "runtime/collective/rendezvous/tcp_store_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rendezvous/tcp_store_protocol.h"

namespace ft {
namespace {

// For requests that a server answers at once; generous, since a loaded machine may not run it at once.
constexpr absl::Duration kReplyTimeout = absl::Seconds(60);
// A server that closes on us this often does not speak the protocol; fewer times, and it may be one that is
// just ending.
constexpr int kMaxRejections = 5;

std::string Prefixed(absl::string_view key) { return absl::StrCat("/", key); }

std::string KeyListMessage(StoreRequest type, absl::Span<const std::string> keys) {
  StoreMessage message(type);
  message.U64(keys.size());
  for (const std::string& key : keys) message.String(Prefixed(key));
  return message.bytes();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpStoreClient>> TcpStoreClient::Connect(const std::string& host,
                                                                        uint16_t port, absl::Time deadline) {
  const std::string name = absl::StrCat(host, ":", port);
  absl::Duration pause = absl::Milliseconds(10);
  absl::Status last;
  for (int rejections = 0; rejections < kMaxRejections;) {
    auto fd = ConnectOnce(host, port, deadline);
    last = fd.status();
    if (fd.ok()) {
      std::unique_ptr<TcpStoreClient> client(new TcpStoreClient(*std::move(fd), name));
      last = client->Handshake(deadline);
      if (last.ok()) return client;
      ++rejections;
    }
    if (absl::Now() + pause >= deadline) break;
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Duration(absl::Seconds(1)));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot reach the store at MASTER_ADDR:MASTER_PORT ", name, ": ", last.message(),
                   "; check that rank 0 (or its launcher) runs there and speaks PyTorch 2.2's TCPStore"));
}

absl::Status TcpStoreClient::Handshake(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  FT_RETURN_IF_ERROR(Send(StoreMessage(StoreRequest::kValidate).U32(kStoreMagic).bytes()));
  // The handshake has no reply; a question that has one shows whether it was accepted.
  FT_RETURN_IF_ERROR(Send(KeyListMessage(StoreRequest::kCheck, {"ftexec/hello"})));
  uint8_t reply = 0;
  return Receive(&reply, sizeof(reply), deadline);
}

absl::Status TcpStoreClient::Set(absl::string_view key, absl::string_view value) {
  absl::MutexLock lock(&mutex_);
  return Send(StoreMessage(StoreRequest::kSet).String(Prefixed(key)).String(value).bytes());
}

absl::StatusOr<std::string> TcpStoreClient::Get(absl::string_view key, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  FT_RETURN_IF_ERROR(WaitLocked({std::string(key)}, deadline));
  FT_RETURN_IF_ERROR(Send(StoreMessage(StoreRequest::kGet).String(Prefixed(key)).bytes()));
  const absl::Time reply_deadline = absl::Now() + kReplyTimeout;
  uint64_t size = 0;
  FT_RETURN_IF_ERROR(Receive(&size, sizeof(size), reply_deadline));
  if (size > kStoreMaxValueBytes)
    return Broken(absl::InternalError(absl::StrCat("a value of ", size, " bytes")));
  std::string value(size, '\0');
  FT_RETURN_IF_ERROR(Receive(value.data(), size, reply_deadline));
  return value;
}

absl::StatusOr<int64_t> TcpStoreClient::Add(absl::string_view key, int64_t delta) {
  absl::MutexLock lock(&mutex_);
  FT_RETURN_IF_ERROR(Send(StoreMessage(StoreRequest::kAdd).String(Prefixed(key)).I64(delta).bytes()));
  int64_t value = 0;
  FT_RETURN_IF_ERROR(Receive(&value, sizeof(value), absl::Now() + kReplyTimeout));
  return value;
}

absl::Status TcpStoreClient::Wait(absl::Span<const std::string> keys, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  return WaitLocked(keys, deadline);
}

absl::StatusOr<bool> TcpStoreClient::Check(absl::Span<const std::string> keys) {
  absl::MutexLock lock(&mutex_);
  FT_RETURN_IF_ERROR(Send(KeyListMessage(StoreRequest::kCheck, keys)));
  uint8_t reply = 0;
  FT_RETURN_IF_ERROR(Receive(&reply, sizeof(reply), absl::Now() + kReplyTimeout));
  return reply == kStorePresent;
}

std::string TcpStoreClient::local_address() const { return LocalAddress(fd_.get()); }
std::string TcpStoreClient::remote_address() const { return RemoteAddress(fd_.get()); }

absl::Status TcpStoreClient::Send(const std::string& bytes) {
  if (!fd_.valid())
    return absl::UnavailableError(absl::StrCat("the connection to the store ", name_, " is closed"));
  absl::Status sent = SendAll(fd_.get(), bytes, absl::Now() + kReplyTimeout);
  return sent.ok() ? sent : Broken(sent);
}

absl::Status TcpStoreClient::Receive(void* data, size_t bytes, absl::Time deadline) {
  absl::Status received = ReceiveAll(fd_.get(), data, bytes, deadline);
  return received.ok() ? received : Broken(received);
}

absl::Status TcpStoreClient::WaitLocked(absl::Span<const std::string> keys, absl::Time deadline) {
  FT_RETURN_IF_ERROR(Send(KeyListMessage(StoreRequest::kWait, keys)));
  uint8_t reply = 0;
  absl::Status received = ReceiveAll(fd_.get(), &reply, sizeof(reply), deadline);
  if (absl::IsDeadlineExceeded(received)) return CancelWait();
  if (!received.ok()) return Broken(received);
  if (reply != kStoreStopWaiting) return Broken(absl::InternalError("an unknown answer to WAIT"));
  return absl::OkStatus();
}

// The server may have answered just before it reads this: then its 0 comes first.
absl::Status TcpStoreClient::CancelWait() {
  FT_RETURN_IF_ERROR(Send(StoreMessage(StoreRequest::kCancelWait).bytes()));
  bool arrived = false;
  for (uint8_t reply = kStoreStopWaiting; reply != kStoreWaitCancelled;) {
    FT_RETURN_IF_ERROR(Receive(&reply, sizeof(reply), absl::Now() + kReplyTimeout));
    arrived |= reply == kStoreStopWaiting;
  }
  return arrived ? absl::OkStatus()
                 : absl::DeadlineExceededError(absl::StrCat("timed out waiting for the store ", name_));
}

absl::Status TcpStoreClient::Broken(const absl::Status& error) {
  fd_.Reset();
  return absl::UnavailableError(absl::StrCat("lost the store at ", name_, ": ", error.message()));
}

}  // namespace ft
