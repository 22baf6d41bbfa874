// Rounds of an exchange over Gloo's TCP connections.
//
// A message is a RoundHeader and data; each rank has room for one message to and one from each other rank.
// Receives always offer the whole room: Gloo ends the process when more arrives than was asked for, and the
// header tells us better.
#pragma once

#include <gloo/rendezvous/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/first_failure.h"
#include "runtime/collective/rounds/round_exchange.h"

namespace ft {

class GlooExchange : public RoundExchange {
 public:
  static size_t StagingBytes();

  GlooExchange(std::shared_ptr<gloo::rendezvous::Context> context, absl::Duration timeout,
               std::vector<std::string> members);
  ~GlooExchange() override;

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  size_t shared_capacity() const override { return piece_capacity(); }
  size_t piece_capacity() const override { return stride_ - sizeof(RoundHeader); }
  std::byte* SharedOutbox() override { return staging_ + sizeof(RoundHeader); }
  std::byte* Outbox(int reader) override { return staging_ + SendOffset(reader) + sizeof(RoundHeader); }
  absl::Status AnnounceShared(const RoundHeader& header, size_t bytes) override;
  absl::Status AnnouncePieces(const RoundHeader& header, size_t bytes) override;
  absl::Status Await(int peer) override;
  const std::byte* Inbox(int writer) const override {
    return staging_ + ReceiveOffset(writer) + sizeof(RoundHeader);
  }
  absl::Status Finish() override;
  absl::Status status() const override { return state_.status(); }
  void Abort(absl::Status reason) override;
  size_t staging_bytes() const override { return StagingBytes(); }

 private:
  using Buffer = gloo::transport::UnboundBuffer;
  using Milliseconds = std::chrono::milliseconds;

  size_t IndexOf(int peer) const { return static_cast<size_t>(peer < rank() ? peer : peer - 1); }
  size_t SendOffset(int reader) const { return IndexOf(reader) * stride_; }
  size_t ReceiveOffset(int writer) const;
  absl::Status PostReceives();
  // Runs a call to Gloo about `peer` that returns false when it was aborted; remembers the first error.
  absl::Status Guard(int peer, absl::FunctionRef<bool(Milliseconds left)> call);

  const absl::Duration timeout_;
  const std::vector<std::string> members_;  // by rank, for messages: "rank 6 (pid 17 on node-a)"
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  const size_t stride_;  // of the rooms for messages
  std::byte* const staging_;
  std::vector<std::unique_ptr<Buffer>> buffers_;  // by rank, each over the whole staging; none for this rank
  RoundHeader header_;                            // of this round
  absl::Time deadline_;                           // of this round
  FirstFailure state_;
};

}  // namespace ft
