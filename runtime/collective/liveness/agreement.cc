#include "runtime/collective/liveness/agreement.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr size_t kMaxTopic = 256;
constexpr size_t kMaxErrorText = 16 << 10;
constexpr size_t kMaxNamedRanks = 8;
constexpr size_t kMaxAnswers = 64;
// Rank 0 names the ranks that are missing: the others give it the time to say so.
constexpr absl::Duration kForItsWord = absl::Seconds(5);

// What stands before a text: the subject and the code; the topic is the rest.
struct Head {
  uint64_t call;
  uint64_t number;
  uint32_t code;
  uint32_t decided;
};

constexpr char kKnownToAll[] = "ft/known-to-all-ranks";

std::string RanksText(const std::vector<size_t>& ranks) {
  const size_t named = std::min(ranks.size(), kMaxNamedRanks);
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(named), ", "),
                      named < ranks.size() ? ", ..." : "");
}

absl::Status TooLong(uint64_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("a text to agree on has ", bytes, " bytes, more than ", Agreement::kMaxBytes));
}

}  // namespace

absl::Status KnownToAll(absl::Status error) {
  error.SetPayload(kKnownToAll, absl::Cord());
  return error;
}

bool IsKnownToAll(const absl::Status& error) { return error.GetPayload(kKnownToAll).has_value(); }

Agreement::Agreement(PeerLinks& links)
    : links_(links), incoming_(links.rank() == 0 ? links.world_size() : 1) {}

absl::StatusOr<std::string> Agreement::Agree(absl::string_view topic, uint64_t number, std::string payload,
                                             Decide decide, absl::Duration timeout) {
  Subject subject{.number = number, .topic = std::string(topic.substr(0, kMaxTopic))};
  {
    absl::MutexLock lock(&links_.mutex());
    if (busy_)
      return absl::InternalError(absl::StrCat("two agreements at once, the second on ", Name(subject)));
    busy_ = true;
    subject.call = ++calls_;
  }
  absl::StatusOr<std::string> result = links_.rank() == 0 ? Lead(subject, std::move(payload), decide, timeout)
                                                          : Follow(subject, std::move(payload), timeout);
  absl::MutexLock lock(&links_.mutex());
  busy_ = false;
  for (Incoming& incoming : incoming_) {
    if (incoming.subject.call <= subject.call) incoming = {};  // what came too late, or in vain
  }
  return result;
}

Agreement::Counts Agreement::counts() const {
  absl::MutexLock lock(&links_.mutex());
  return counts_;
}

std::string Agreement::Name(const Subject& subject) {
  return absl::StrCat("'", subject.topic, "' ", subject.number);
}

std::string Agreement::HeadOf(const Subject& subject, absl::StatusCode code, bool decided) {
  const Head head{subject.call, subject.number, static_cast<uint32_t>(code), decided ? 1u : 0u};
  return absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&head), sizeof(head)), subject.topic);
}

void Agreement::Hear(size_t rank, PeerMessageType type, absl::string_view text) {
  if (type == PeerMessageType::kGoodbye) stirred_ = true;
  if (rank >= incoming_.size()) return;
  if (type == PeerMessageType::kTextBegin) return Begin(rank, text);
  Incoming& incoming = incoming_[rank];
  if (type != PeerMessageType::kTextPart || incoming.complete || incoming.size == 0) return;
  // More than was said is nonsense, and what nobody waits for any more is not kept.
  incoming.bytes.append(text.data(), std::min<size_t>(text.size(), incoming.size - incoming.bytes.size()));
  incoming.complete = incoming.bytes.size() == incoming.size;
  stirred_ |= incoming.complete;
  if (incoming.complete && links_.rank() > 0) Keep(std::exchange(incoming, {}));
}

// What comes before its call is an error, for lack of this rank's part: short.
void Agreement::Keep(Incoming answer) {
  if (answers_.size() >= kMaxAnswers) answers_.pop_front();
  answers_.push_back(std::move(answer));
}

void Agreement::Begin(size_t rank, absl::string_view text) {
  uint64_t size = 0;
  Head head;
  if (text.size() < sizeof(size) + sizeof(head)) return;
  std::memcpy(&size, text.data(), sizeof(size));
  std::memcpy(&head, text.data() + sizeof(size), sizeof(head));
  Incoming incoming;
  incoming.subject = {head.call, head.number, std::string(text.substr(sizeof(size) + sizeof(head)))};
  incoming.code = static_cast<absl::StatusCode>(head.code);
  incoming.decided = head.decided != 0;
  const bool stale = head.call < calls_ || (head.call == calls_ && !busy_);
  if (stale) return void(incoming_[rank] = Incoming{});  // this rank has given up on it
  incoming.refused = size > (head.code == 0 ? kMaxBytes : kMaxErrorText);
  incoming.size = incoming.refused ? 0 : size;
  incoming.complete = incoming.size == 0;
  stirred_ = true;
  if (incoming.complete && links_.rank() > 0) return Keep(std::move(incoming));
  incoming_[rank] = std::move(incoming);
}

absl::StatusOr<std::string> Agreement::Lead(const Subject& subject, std::string payload, Decide decide,
                                            absl::Duration timeout) {
  absl::StatusOr<std::vector<std::string>> payloads = Collect(subject, std::move(payload), timeout);
  absl::StatusOr<std::string> result =
      payloads.ok() ? decide(*payloads) : absl::StatusOr<std::string>(payloads.status());
  if (result.ok() && result->size() > kMaxBytes) result = TooLong(result->size());
  absl::MutexLock lock(&links_.mutex());
  const bool told = Tell(subject, result, payloads.ok());
  return told && payloads.ok() && !result.ok() ? KnownToAll(result.status()) : result;
}

// What all ranks brought, by rank.
absl::StatusOr<std::vector<std::string>> Agreement::Collect(const Subject& subject, std::string payload,
                                                            absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  if (payload.size() > kMaxBytes) return TooLong(payload.size());
  absl::MutexLock lock(&links_.mutex());
  const auto stirred = [this] { return stirred_ || links_.over(); };
  std::vector<size_t> missing;
  for (;;) {
    stirred_ = false;
    FT_RETURN_IF_ERROR(links_.WhyOver());
    FT_RETURN_IF_ERROR(Objection(subject, &missing));
    if (missing.empty()) break;
    if (links_.mutex().AwaitWithDeadline(absl::Condition(&stirred), deadline)) continue;
    return absl::DeadlineExceededError(absl::StrCat(RanksText(missing), " did not come to agree on ",
                                                    Name(subject), " within ",
                                                    absl::FormatDuration(timeout)));
  }
  std::vector<std::string> payloads(incoming_.size());
  payloads[0] = std::move(payload);
  for (size_t rank = 1; rank < incoming_.size(); ++rank)
    payloads[rank] = std::exchange(incoming_[rank], {}).bytes;
  ++counts_.agreements;
  counts_.messages_in += static_cast<int64_t>(payloads.size()) - 1;
  return payloads;
}

// Why there will be no agreement; else who is still missing.
absl::Status Agreement::Objection(const Subject& subject, std::vector<size_t>* missing) const {
  missing->clear();
  for (size_t rank = 1; rank < incoming_.size(); ++rank) {
    const Incoming& incoming = incoming_[rank];
    const Subject& theirs = incoming.subject;
    if (theirs.call < subject.call) {
      if (links_.Left(rank)) {
        return absl::UnavailableError(
            absl::StrCat("rank ", rank, " ended and did not come to agree on ", Name(subject)));
      }
      missing->push_back(rank);
    } else if (theirs.call > subject.call) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank, " waited no longer to agree on ", Name(subject)));
    } else if (theirs.number != subject.number || theirs.topic != subject.topic) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " wants to agree on ", Name(theirs), " and rank 0 on ", Name(subject)));
    } else if (incoming.refused) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " brings too long a text to agree on ", Name(subject)));
    } else if (!incoming.complete) {
      missing->push_back(rank);
    } else if (incoming.code != absl::StatusCode::kOk) {
      return absl::Status(incoming.code, absl::StrCat("rank ", rank, ": ", incoming.bytes));
    }
  }
  return absl::OkStatus();
}

// Whether others get it; else there are none, or they have been told something, or will be.
bool Agreement::Tell(const Subject& subject, const absl::StatusOr<std::string>& result, bool decided) {
  if (links_.over() || incoming_.size() == 1) return false;
  const auto text = std::make_shared<const std::string>(
      result.ok() ? *result : std::string(result.status().message().substr(0, kMaxErrorText)));
  const std::string head = HeadOf(subject, result.status().code(), decided);
  for (size_t rank = 1; rank < incoming_.size(); ++rank) {
    links_.SendText(rank, head, text);
    ++counts_.messages_out;
  }
  return true;
}

absl::StatusOr<std::string> Agreement::Follow(const Subject& subject, std::string payload,
                                              absl::Duration timeout) {
  absl::MutexLock lock(&links_.mutex());
  // Rank 0 may have given up on this agreement by now.
  while (!answers_.empty() && answers_.front().subject.call < subject.call) answers_.pop_front();
  if (!Answered(subject)) {
    if (links_.over()) return links_.WhyOver();
    const absl::Status fits = payload.size() > kMaxBytes ? TooLong(payload.size()) : absl::OkStatus();
    if (!fits.ok()) payload = std::string(fits.message());
    links_.SendText(0, HeadOf(subject, fits.code()), std::make_shared<const std::string>(std::move(payload)));
  }
  const auto settled = [&] { return Answered(subject) || links_.over(); };
  links_.mutex().AwaitWithTimeout(absl::Condition(&settled), timeout + kForItsWord);
  if (!Answered(subject)) {
    links_.DropTexts();
    if (links_.over()) return links_.WhyOver();
    return absl::DeadlineExceededError(absl::StrCat("rank 0 did not say what was agreed on ", Name(subject),
                                                    " within ", absl::FormatDuration(timeout),
                                                    "; it, or a rank that it waits for, did not come"));
  }
  if (answers_.front().subject.call > subject.call) {
    return absl::DeadlineExceededError(
        absl::StrCat("rank 0 waited no longer for this rank to agree on ", Name(subject)));
  }
  Incoming answer = std::move(answers_.front());
  answers_.pop_front();
  if (answer.refused) return absl::InternalError("rank 0 sends nonsense");
  if (answer.code != absl::StatusCode::kOk) {
    absl::Status error(answer.code, answer.bytes);
    return answer.decided ? KnownToAll(std::move(error)) : error;
  }
  return std::move(answer.bytes);
}

// Answers come in the order of the calls.
bool Agreement::Answered(const Subject& subject) const {
  return !answers_.empty() && answers_.front().subject.call >= subject.call;
}

}  // namespace ft
