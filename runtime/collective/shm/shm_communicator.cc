#include "runtime/collective/shm/shm_communicator.h"

#include <utility>

#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rounds/round_communicator.h"
#include "runtime/collective/shm/shm_exchange.h"

namespace ft {

absl::StatusOr<std::unique_ptr<Communicator>> CreateShmCommunicator(Store* store, const ShmOptions& options) {
  SharedSegment::Options segment_options;
  segment_options.key = options.key;
  segment_options.rank = options.rank;
  segment_options.size = options.size;
  segment_options.bytes = ShmExchange::SegmentBytes(options.size);
  segment_options.deadline = absl::Now() + options.connect_timeout;
  segment_options.interrupted = options.interrupted;
  FT_ASSIGN_OR_RETURN(SharedSegment segment, SharedSegment::Create(store, segment_options));
  ShmExchange::Options exchange{options.rank, options.size, options.timeout, options.spin, options.members};
  return CreateRoundCommunicator(std::make_unique<ShmExchange>(std::move(segment), std::move(exchange)));
}

size_t ShmStagingBytes() { return ShmExchange::SegmentBytes(1); }

}  // namespace ft
