#include "runtime/executor/resume.h"

#include <cstdlib>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/branches.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/manifest.h"
#include "runtime/plan/attributes.h"

namespace ft {
namespace {

constexpr char kDone[] = "done", kNone[] = "none";

// As a payload: "+", or "-", the code's number and the message.
std::string Payload(const absl::Status& status) {
  if (status.ok()) return "+";
  return fmt::format("-{} {}", static_cast<int>(status.code()), std::string(status.message()));
}

absl::Status StatusOf(const std::string& payload) {
  if (payload == "+") return absl::OkStatus();
  const size_t space = payload.find(' ');
  if (payload.empty() || payload[0] != '-' || space == std::string::npos)
    return absl::InternalError("a rank said nothing of what it loaded");
  return absl::Status(static_cast<absl::StatusCode>(std::atoi(payload.c_str() + 1)),
                      payload.substr(space + 1));
}

// Damage that another checkpoint may not have, or a disk's failure. Everything else is the user's to settle:
// whoever may not read the newest checkpoint would not want to go on from an older one.
bool MayTryAnother(const absl::Status& status) {
  return !absl::IsInvalidArgument(status) && !absl::IsPermissionDenied(status);
}

absl::Status CheckSameModel(const ResumeRequest& request, const CheckpointReader& reader) {
  const proto::Manifest& manifest = reader.manifest();
  const proto::Attribute* optimizer = FindAttribute(manifest.settings(), "optimizer");
  if (!request.weights_only && optimizer != nullptr && optimizer->s() != request.optimizer)
    return absl::InvalidArgumentError(
        fmt::format("the checkpoint '{}' is of the optimizer {}, and the plan's is '{}'", reader.folder(),
                    Quote(optimizer->s()), request.optimizer));
  if (manifest.model().fingerprint() == request.fingerprint) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the checkpoint '{}' is of another model ({}): its shapes fit, but not all facts",
                  reader.folder(), Quote(manifest.model().name())));
}

absl::Status CheckState(const ResumeRequest& request, const StateLayout& state,
                        const CheckpointReader& reader) {
  return request.weights_only ? CheckSameWeights(state, reader) : CheckSameState(state, reader);
}

// Rank 0's list of what to try.
class Chooser {
 public:
  Chooser(const ResumeRequest& request, const StateLayout& state) : request_(request), state_(state) {}

  absl::StatusOr<std::string> Decide(const std::vector<std::string>& by_rank) {
    if (!begun_) {
      begun_ = true;
      FT_RETURN_IF_ERROR(List());
      return Next();
    }
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      const absl::Status status = StatusOf(by_rank[rank]);
      if (status.ok()) continue;
      const std::string why = by_rank.size() == 1
                                  ? std::string(status.message())
                                  : fmt::format("rank {}: {}", rank, std::string(status.message()));
      if (!request_.checkpoint.empty() || !MayTryAnother(status)) return absl::Status(status.code(), why);
      PassOver(why);
      return Next();
    }
    return kDone;
  }

  std::vector<std::string> TakeNotes() { return std::move(notes_); }

 private:
  absl::Status List() {
    if (!request_.checkpoint.empty()) {
      paths_ = {request_.checkpoint};
      return absl::OkStatus();
    }
    FT_ASSIGN_OR_RETURN(const std::vector<BranchedCheckpoint> there, ListBranches(request_.folder));
    for (const CheckpointEntry& entry : NewestBranch(there)) paths_.push_back(entry.path);
    return absl::OkStatus();
  }

  // What can be seen without loading. Whether the model is the same is asked first: that no other checkpoint
  // mends.
  absl::Status Examine(const std::string& path) const {
    FT_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, CheckpointReader::Open(path));
    if (request_.checkpoint.empty()) FT_RETURN_IF_ERROR(reader->CheckStepOfName());
    FT_RETURN_IF_ERROR(CheckState(request_, state_, *reader));
    FT_RETURN_IF_ERROR(CheckSameModel(request_, *reader));
    return reader->VerifyFiles();
  }

  void PassOver(const std::string& why) {
    notes_.push_back(fmt::format("passed over the checkpoint '{}': {}", paths_[next_ - 1], why));
  }

  absl::StatusOr<std::string> Next() {
    while (next_ < paths_.size()) {
      const std::string& path = paths_[next_++];
      const absl::Status status = Examine(path);
      if (status.ok()) return path;
      if (!request_.checkpoint.empty() || absl::IsPermissionDenied(status)) return status;
      if (!MayTryAnother(status) && !IsDamagedManifest(path)) return status;
      PassOver(std::string(status.message()));
    }
    if (!paths_.empty())
      notes_.push_back(fmt::format("no checkpoint in '{}' is whole: the run begins", request_.folder));
    return kNone;
  }

  // Whether the error came of the manifest itself, whatever it says.
  static bool IsDamagedManifest(const std::string& path) { return !CheckpointReader::Open(path).ok(); }

  const ResumeRequest& request_;
  const StateLayout& state_;
  bool begun_ = false;
  std::vector<std::string> paths_;
  size_t next_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

absl::StatusOr<Resumed> Resume(const ResumeRequest& request, const proto::Plan& plan,
                               const StateLayout& state, const Executor& executor,
                               const AgreeFunction& agree) {
  Chooser chooser(request, state);
  Resumed resumed;
  bool touched = false;
  std::string payload;
  for (uint64_t round = 0;; ++round) {
    FT_ASSIGN_OR_RETURN(const std::string answer, agree("resuming", round, payload, [&](const auto& by_rank) {
                          return chooser.Decide(by_rank);
                        }));
    if (answer == kDone || answer == kNone) {
      resumed.notes = chooser.TakeNotes();
      if (answer == kDone) return resumed;
      resumed.reader.reset();
      if (touched) FT_RETURN_IF_ERROR(ClearState(plan, state, executor));
      return resumed;
    }
    touched = true;
    const auto load = [&]() -> absl::Status {
      FT_ASSIGN_OR_RETURN(resumed.reader, CheckpointReader::Open(answer));
      FT_RETURN_IF_ERROR(CheckState(request, state, *resumed.reader));
      return LoadState(plan, state, executor, *resumed.reader);
    };
    payload = Payload(load());
  }
}

}  // namespace ft
