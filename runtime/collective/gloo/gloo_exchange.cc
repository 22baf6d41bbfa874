#include "runtime/collective/gloo/gloo_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/gloo/gloo_mesh.h"
#include "runtime/collective/rounds/round_messages.h"

namespace ft {
namespace {

// All messages to the other ranks; as much again for those from them.
constexpr size_t kAreaBytes = size_t{2} << 20;
constexpr std::align_val_t kAlignment{4096};
constexpr size_t kLine = 64;
// Messages of one pair arrive in order, so that one number does for all.
constexpr uint64_t kTag = 1;

}  // namespace

size_t GlooExchange::StagingBytes() { return 2 * kAreaBytes; }

GlooExchange::GlooExchange(std::shared_ptr<gloo::rendezvous::Context> context, absl::Duration timeout,
                           std::vector<std::string> members)
    : timeout_(timeout),
      members_(std::move(members)),
      context_(std::move(context)),
      stride_(kAreaBytes / static_cast<size_t>(context_->size - 1) / kLine * kLine),
      staging_(static_cast<std::byte*>(operator new(StagingBytes(), kAlignment))),
      buffers_(static_cast<size_t>(context_->size)) {
  std::memset(staging_, 0, StagingBytes());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank())
      buffers_[static_cast<size_t>(peer)] = context_->createUnboundBuffer(staging_, StagingBytes());
  }
}

GlooExchange::~GlooExchange() {
  // In this order: nothing may be under way when the buffers and then the memory go.
  CatchGloo([this] {
    context_->closeConnections();
    return absl::OkStatus();
  }).IgnoreError();
  buffers_.clear();
  operator delete(staging_, kAlignment);
}

size_t GlooExchange::ReceiveOffset(int writer) const { return kAreaBytes + IndexOf(writer) * stride_; }

absl::Status GlooExchange::AnnounceShared(const RoundHeader& header, size_t bytes) {
  header_ = header;
  FT_RETURN_IF_ERROR(PostReceives());
  std::memcpy(staging_, &header, sizeof(header));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    FT_RETURN_IF_ERROR(Guard(peer, [&](Milliseconds) {
      buffers_[static_cast<size_t>(peer)]->send(peer, kTag, 0, sizeof(header) + bytes);
      return true;
    }));
  }
  return absl::OkStatus();
}

absl::Status GlooExchange::AnnouncePieces(const RoundHeader& header, size_t bytes) {
  header_ = header;
  FT_RETURN_IF_ERROR(PostReceives());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    std::memcpy(staging_ + SendOffset(peer), &header, sizeof(header));
    FT_RETURN_IF_ERROR(Guard(peer, [&](Milliseconds) {
      buffers_[static_cast<size_t>(peer)]->send(peer, kTag, SendOffset(peer), sizeof(header) + bytes);
      return true;
    }));
  }
  return absl::OkStatus();
}

absl::Status GlooExchange::PostReceives() {
  deadline_ = absl::Now() + timeout_;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    FT_RETURN_IF_ERROR(Guard(peer, [&](Milliseconds) {
      buffers_[static_cast<size_t>(peer)]->recv(peer, kTag, ReceiveOffset(peer), stride_);
      return true;
    }));
  }
  return absl::OkStatus();
}

absl::Status GlooExchange::Await(int peer) {
  FT_RETURN_IF_ERROR(Guard(
      peer, [&](Milliseconds left) { return buffers_[static_cast<size_t>(peer)]->waitRecv(nullptr, left); }));
  RoundHeader theirs;
  std::memcpy(&theirs, staging_ + ReceiveOffset(peer), sizeof(theirs));
  absl::Status same = CompareHeaders(members_, rank(), header_, peer, theirs);
  return same.ok() ? same : state_.Set(std::move(same));
}

absl::Status GlooExchange::Finish() {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    FT_RETURN_IF_ERROR(Guard(peer, [&](Milliseconds left) {
      return buffers_[static_cast<size_t>(peer)]->waitSend(nullptr, left);
    }));
  }
  return absl::OkStatus();
}

void GlooExchange::Abort(absl::Status reason) {
  state_.Set(std::move(reason)).IgnoreError();
  for (const auto& buffer : buffers_) {
    if (buffer == nullptr) continue;
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

absl::Status GlooExchange::Guard(int peer, absl::FunctionRef<bool(Milliseconds left)> call) {
  FT_RETURN_IF_ERROR(state_.status());
  // At least one: Gloo takes a negative time for its own default.
  const Milliseconds left(std::max<int64_t>(1, absl::ToInt64Milliseconds(deadline_ - absl::Now())));
  // Gloo throws one exception for a time-out and for a broken connection: what tells them apart is that it
  // waited all that it was given, by the clock that it waits with.
  const auto begin = std::chrono::steady_clock::now();
  absl::Status error = CatchGloo([&] {
    // False only after Abort, whose reason is in state_.
    return call(left) ? absl::OkStatus() : absl::CancelledError("aborted");
  });
  if (error.ok() || state_.failed()) return state_.status();
  if (std::chrono::steady_clock::now() - begin >= left)
    return state_.Set(RoundTimedOut(header_, timeout_, {peer}, members_));
  return state_.Set(
      absl::UnavailableError(absl::StrCat("in ", Describe(header_), ": the connection to ",
                                          members_[static_cast<size_t>(peer)], " broke: ", error.message())));
}

}  // namespace ft
