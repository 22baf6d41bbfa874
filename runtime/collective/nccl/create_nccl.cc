#include "runtime/collective/nccl/create_nccl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/nccl/nccl_communicator.h"
#include "runtime/collective/nccl/single_rank.h"
#include "runtime/collective/nccl/windows.h"
#include "runtime/collective/rendezvous/interruptible_wait.h"

namespace ft::nccl {
namespace {

constexpr const char* kIdKey = "nccl/id";

std::string ArrivalKey(int rank) { return absl::StrCat("nccl/arrived/", rank); }

// An id has any bytes; what stores and their tools show is text.
std::string ToText(const UniqueId& id) {
  return absl::BytesToHexString(absl::string_view(id.internal, sizeof(id.internal)));
}

absl::StatusOr<UniqueId> FromText(const std::string& text) {
  UniqueId id;
  const std::string bytes = text.size() == 2 * sizeof(id.internal) ? absl::HexStringToBytes(text) : "";
  if (bytes.size() != sizeof(id.internal)) return absl::InternalError("rank 0 left no unique id of NCCL's");
  std::copy(bytes.begin(), bytes.end(), id.internal);
  return id;
}

// Makes communicators together with the other ranks.
class Meeting {
 public:
  Meeting(const NcclOptions& options, std::shared_ptr<NcclApi> api)
      : options_(options),
        api_(std::move(api)),
        patience_{absl::Now() + options.connect_timeout, options.interrupted},
        watchdog_(std::make_shared<NcclWatchdog>(
            std::clamp(options.timeout / 20, absl::Milliseconds(5), absl::Milliseconds(200)))) {}

  absl::Status Begin() {
    if (api_->GetVersion(&version_) != kSuccess) version_ = 0;
    FT_ASSIGN_OR_RETURN(const UniqueId id, ExchangeId());
    FT_RETURN_IF_ERROR(AwaitArrivals());
    auto world =
        NcclHandle::Init(api_, static_cast<int>(options_.members.size()), id, options_.rank, patience_);
    FT_RETURN_IF_ERROR(InWords(world.status()));
    world_ = *std::move(world);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Make(size_t index, const NcclGroup& members) {
    const std::vector<int>& group = members.ranks;
    const auto found = std::find(group.begin(), group.end(), options_.rank);
    if (found == group.end()) {
      return absl::InternalError(absl::StrCat("rank ", options_.rank, " is none of a group of ranks ",
                                              absl::StrJoin(group, ", "), " that it is to talk to"));
    }
    const int rank = static_cast<int>(found - group.begin());
    const bool alone = group.size() == 1;
    const bool windows = members.can_map && WindowsWork(version_, static_cast<int>(group.size()));
    const CtaPolicy policy = windows ? CtaPolicyOf(members.gathers) : CtaPolicy::kLibrarys;
    // Groups of one place share no rank: the first one names them.
    auto handle = world_->Split(alone ? kNoColor : group[0], rank, patience_, policy);
    FT_RETURN_IF_ERROR(InWords(handle.status()));
    if (alone) return CreateSingleRankCommunicator(options_.cuda);
    NcclCommunicatorOptions made;
    made.rank = rank;
    made.size = static_cast<int>(group.size());
    made.deterministic = options_.deterministic;
    made.staging_bytes =
        options_.staging_bytes > 0 ? options_.staging_bytes : NcclStagingBytes(options_.deterministic);
    made.cuda = options_.cuda;
    made.windows = windows;
    made.connect_timeout = options_.connect_timeout;
    made.interrupted = options_.interrupted;
    made.stall.store = options_.store;
    made.stall.key = absl::StrCat("nccl/", index, "/", group[0]);
    made.stall.rank = rank;
    made.stall.timeout = options_.timeout;
    for (const int member : group)
      made.stall.members.push_back(options_.members[static_cast<size_t>(member)]);
    made.watchdog = watchdog_;
    return CreateNcclCommunicator(*std::move(handle), std::move(made));
  }

  // The communicator that the others came from is needed no more.
  void End() { world_->Close(patience_.deadline); }

 private:
  absl::StatusOr<UniqueId> ExchangeId() {
    if (options_.rank == 0) {
      UniqueId id;
      if (const Result result = api_->GetUniqueId(&id); result != kSuccess) {
        return absl::UnavailableError(
            absl::StrCat("NCCL finds no way to be reached: ", api_->GetErrorString(result), " (",
                         api_->GetLastError(nullptr), ")"));
      }
      FT_RETURN_IF_ERROR(options_.store->Set(kIdKey, ToText(id)));
      return id;
    }
    FT_RETURN_IF_ERROR(Await({kIdKey}, {0}));
    FT_ASSIGN_OR_RETURN(const std::string text, options_.store->Get(kIdKey, patience_.deadline));
    return FromText(text);
  }

  // NCCL itself could not say who is missing.
  absl::Status AwaitArrivals() {
    FT_RETURN_IF_ERROR(options_.store->Set(ArrivalKey(options_.rank), "1"));
    std::vector<std::string> keys;
    std::vector<int> ranks;
    for (int rank = 0; rank < static_cast<int>(options_.members.size()); ++rank) {
      keys.push_back(ArrivalKey(rank));
      ranks.push_back(rank);
    }
    return Await(keys, ranks);
  }

  // Waits for keys, each of which one of `ranks` leaves.
  absl::Status Await(const std::vector<std::string>& keys, const std::vector<int>& ranks) {
    absl::Status waited = InterruptibleWait(options_.store, keys, patience_.deadline, options_.interrupted);
    if (!absl::IsDeadlineExceeded(waited)) return waited;
    std::vector<std::string> missing;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto here = options_.store->Check({keys[i]});
      if (!here.ok() || !*here) missing.push_back(options_.members[static_cast<size_t>(ranks[i])]);
    }
    return absl::UnavailableError(
        absl::StrCat("timed out after ", absl::FormatDuration(options_.connect_timeout),
                     " while NCCL's communicators were made, waiting for ", absl::StrJoin(missing, ", ")));
  }

  absl::Status InWords(const absl::Status& status) const {
    if (!absl::IsDeadlineExceeded(status)) return status;
    return absl::UnavailableError(
        absl::StrCat("timed out after ", absl::FormatDuration(options_.connect_timeout),
                     " while NCCL's communicators were made, which all ranks had begun (", status.message(),
                     "; NCCL_DEBUG=INFO tells more)"));
  }

  const NcclOptions& options_;
  const std::shared_ptr<NcclApi> api_;
  const Patience patience_;
  const std::shared_ptr<NcclWatchdog> watchdog_;
  int version_ = 0;  // of the library; 0: not known
  std::unique_ptr<NcclHandle> world_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateNcclCommunicators(
    absl::Span<const NcclGroup> groups, const NcclOptions& options) {
  std::shared_ptr<NcclApi> api = options.cuda.nccl;
  if (api == nullptr) {
    FT_ASSIGN_OR_RETURN(api, LoadNccl());
  }
  Meeting meeting(options, std::move(api));
  FT_RETURN_IF_ERROR(meeting.Begin());
  std::vector<std::unique_ptr<Communicator>> made;
  for (const NcclGroup& group : groups) {
    FT_ASSIGN_OR_RETURN(auto communicator, meeting.Make(made.size(), group));
    made.push_back(std::move(communicator));
  }
  meeting.End();
  return made;
}

}  // namespace ft::nccl
