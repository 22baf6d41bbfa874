#include "runtime/collective/rendezvous/meeting.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr char kGeneration[] = "generation";
constexpr char kNotes[] = "notes";
// How often a waiting rank looks whether it was overtaken by a restart. Nothing else waits for this.
constexpr absl::Duration kSlice = absl::Milliseconds(500);
constexpr size_t kMaxNamed = 8;

std::string NoteKey(int64_t number) { return absl::StrCat("note/", number); }
std::string RosterKey(int64_t generation) { return absl::StrCat(generation, "/roster"); }

absl::Status Post(Store* store, absl::string_view note) {
  FT_ASSIGN_OR_RETURN(const int64_t number, store->Add(kNotes, 1));
  return store->Set(NoteKey(number), note);
}

std::string RandomNonce() {
  std::random_device device;
  return absl::StrCat(absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8),
                      absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8));
}

// "code\nmessage\n" and the peers.
std::string EncodeRoster(const Roster& roster) {
  return absl::StrCat(static_cast<int>(roster.verdict.code()), "\n", roster.verdict.message(), "\n",
                      EncodePeers(roster.peers));
}

absl::StatusOr<Roster> DecodeRoster(int64_t generation, absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('\n', 2));
  int code = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &code)) {
    return absl::InternalError("the store holds something else than a list of ranks");
  }
  FT_ASSIGN_OR_RETURN(std::vector<PeerInfo> peers, DecodePeers(parts[2]));
  return Roster{generation, absl::Status(static_cast<absl::StatusCode>(code), parts[1]), std::move(peers)};
}

std::string Described(const PeerInfo& peer) {
  const std::string print = peer.fingerprint.substr(0, 16);
  return peer.label.empty() ? print : absl::StrCat(peer.label, " [", print, "]");
}

using Settings = std::vector<std::pair<absl::string_view, absl::string_view>>;

// Those of a fingerprint of the form "plan=12ab steps=5 ...", in order; empty for any other. A value may have
// spaces: what has no "=" belongs to the one before.
Settings SettingsOf(const PeerInfo& peer) {
  Settings settings;
  for (absl::string_view word : absl::StrSplit(peer.fingerprint, ' ')) {
    if (absl::StrContains(word, '=')) {
      settings.push_back(absl::StrSplit(word, absl::MaxSplits('=', 1)));
    } else if (!settings.empty()) {
      absl::string_view& value = settings.back().second;
      value = absl::string_view(value.data(), static_cast<size_t>(word.end() - value.begin()));
    } else {
      return {};
    }
  }
  return settings;
}

// Empty: a rank that was not given it does not name it.
absl::string_view ValueOf(const Settings& settings, absl::string_view name) {
  for (const auto& [other, value] : settings) {
    if (other == name) return value;
  }
  return "";
}

std::string DifferentPlans(const std::vector<const PeerInfo*>& kinds) {
  std::vector<std::string> differing;
  for (const PeerInfo* peer : kinds) {
    if (differing.size() < kMaxNamed)
      differing.push_back(
          absl::StrCat("rank ", peer->rank, " on ", peer->hostname, " has ", Described(*peer)));
  }
  return absl::StrCat("hold different plans: ", absl::StrJoin(differing, ", "));
}

// "0.1 on rank 0 (a), not given on rank 3 (b)": the first rank of each value; empty where there is but one.
std::string DifferingValues(absl::string_view name, const std::vector<const PeerInfo*>& kinds,
                            const std::vector<Settings>& settings) {
  std::set<absl::string_view> values;
  std::vector<std::string> places;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const absl::string_view value = ValueOf(settings[i], name);
    if (!values.insert(value).second || places.size() >= kMaxNamed) continue;
    places.push_back(absl::StrCat(value.empty() ? "not given" : value, " on rank ", kinds[i]->rank, " (",
                                  kinds[i]->hostname, ")"));
  }
  return values.size() == 1 ? "" : absl::StrJoin(places, ", ");
}

// "differ in lr: 0.1 on rank 0 (host a), 0.2 on rank 3 (host b)", or what DifferentPlans says where it is the
// plan, or not to be told.
std::string Difference(const std::vector<const PeerInfo*>& kinds) {
  std::vector<Settings> settings;
  for (const PeerInfo* peer : kinds) settings.push_back(SettingsOf(*peer));
  // Those with the fewest first: what one that does something else (a check) says of itself comes before all
  // that it was not given.
  std::vector<Settings> in_order = settings;
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const Settings& a, const Settings& b) { return a.size() < b.size(); });
  for (const Settings& of_kind : in_order) {
    for (const auto& [name, value] : of_kind) {
      const std::string values = DifferingValues(name, kinds, settings);
      if (values.empty()) continue;
      if (name == "plan") return DifferentPlans(kinds);
      return absl::StrCat("differ in ", name, ": ", values);
    }
  }
  return DifferentPlans(kinds);
}

// The process that has the rank's seat in a roster, when it is not `self` and did not die before it was
// started again. An earlier run on the same store may have left it.
std::optional<PeerInfo> FindRival(const Roster& roster, const PeerInfo& self) {
  for (const PeerInfo& peer : roster.peers) {
    const bool other = peer.pid != self.pid || peer.host_id != self.host_id || peer.hostname != self.hostname;
    if (peer.rank == self.rank && other && peer.restart_count >= self.restart_count) return peer;
  }
  return std::nullopt;
}

bool IsHere(const PeerInfo& rival, const PeerInfo& self) {
  return rival.host_id == self.host_id && rival.hostname == self.hostname;
}

// Known of processes of this host only.
bool StillRuns(const PeerInfo& rival, const PeerInfo& self) {
  return IsHere(rival, self) && (kill(static_cast<pid_t>(rival.pid), 0) == 0 || errno == EPERM);
}

absl::Status ClaimedTwice(const PeerInfo& first, const PeerInfo& second) {
  return absl::AlreadyExistsError(absl::StrCat("two processes claim rank ", first.rank, ": ",
                                               Whereabouts(first), ", and ", Whereabouts(second),
                                               "; give every process its own RANK"));
}

class Leader {
 public:
  Leader(Store* store, const PeerInfo& self, int world_size, absl::Duration timeout)
      : store_(store),
        peers_(static_cast<size_t>(world_size)),
        timeout_(timeout),
        deadline_(absl::Now() + timeout) {
    peers_[0] = self;
  }

  absl::StatusOr<Roster> Run() {
    FT_ASSIGN_OR_RETURN(generation_, store_->Add(kGeneration, 1));
    while (verdict_.ok() && !Complete()) {
      if (absl::Now() >= deadline_) {
        verdict_ = MissingRanks();
        break;
      }
      FT_RETURN_IF_ERROR(ReadNotes());
    }
    Roster roster{generation_, verdict_, {}};
    for (auto& peer : peers_) {
      if (peer.has_value()) roster.peers.push_back(*std::move(peer));
    }
    if (roster.verdict.ok()) roster.verdict = CompareFingerprints(roster.peers);
    FT_RETURN_IF_ERROR(store_->Set(RosterKey(generation_), EncodeRoster(roster)));
    // SET has no answer; a question behind it proves that it arrived.
    FT_RETURN_IF_ERROR(store_->Check({RosterKey(generation_)}).status());
    return roster;
  }

 private:
  bool Complete() const {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.has_value(); });
  }

  absl::Status ReadNotes() {
    const absl::Status waited = store_->Wait({NoteKey(next_)}, std::min(deadline_, absl::Now() + kSlice));
    if (waited.ok()) return ReadNote(next_++);
    if (!absl::IsDeadlineExceeded(waited)) return waited;
    FT_ASSIGN_OR_RETURN(const int64_t newest, store_->Add(kGeneration, 0));
    if (newest != generation_) {
      verdict_ = absl::AlreadyExistsError(
          absl::StrCat("another process claims rank 0 as well as ", Whereabouts(*peers_[0]),
                       ": give every process its own RANK, or end the earlier run"));
      return absl::OkStatus();
    }
    return ReadBehindGaps();
  }

  // A process that died between taking a number and writing its note leaves a gap.
  absl::Status ReadBehindGaps() {
    FT_ASSIGN_OR_RETURN(const int64_t last, store_->Add(kNotes, 0));
    for (; next_ <= last; ++next_) gaps_.push_back(next_);
    std::vector<int64_t> still;
    for (const int64_t number : std::exchange(gaps_, {})) {
      FT_ASSIGN_OR_RETURN(const bool there, store_->Check({NoteKey(number)}));
      if (!there) {
        still.push_back(number);
      } else {
        FT_RETURN_IF_ERROR(ReadNote(number));
      }
    }
    gaps_ = std::move(still);
    return absl::OkStatus();
  }

  absl::Status ReadNote(int64_t number) {
    FT_ASSIGN_OR_RETURN(const std::string note, store_->Get(NoteKey(number), deadline_ + kSlice));
    const std::vector<absl::string_view> words = absl::StrSplit(note, absl::MaxSplits(' ', 2));
    if (words.size() == 2 && words[0] == "hello") {
      return store_->Set(absl::StrCat("ack/", words[1]), absl::StrCat(generation_));
    }
    if (words.size() == 3 && words[0] == "facts" && words[1] == absl::StrCat(generation_)) {
      FT_ASSIGN_OR_RETURN(std::vector<PeerInfo> peers, DecodePeers(words[2]));
      for (PeerInfo& peer : peers) Arrive(std::move(peer));
    }
    return absl::OkStatus();
  }

  void Arrive(PeerInfo peer) {
    if (peer.rank < 0 || peer.rank >= static_cast<int>(peers_.size())) {
      verdict_ = absl::InvalidArgumentError(absl::StrCat("rank ", peer.rank, " (", Whereabouts(peer),
                                                         ") came to a run of WORLD_SIZE=", peers_.size(),
                                                         ": give every process the same WORLD_SIZE"));
      return;
    }
    auto& seat = peers_[static_cast<size_t>(peer.rank)];
    // Agents restart their own workers only; a restarted rank takes the seat of its dead predecessor.
    if (seat.has_value() && seat->restart_count >= peer.restart_count) {
      verdict_ = ClaimedTwice(*seat, peer);
      return;
    }
    seat = std::move(peer);
  }

  absl::Status MissingRanks() const {
    std::vector<int> missing;
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      if (!peers_[rank].has_value()) missing.push_back(static_cast<int>(rank));
    }
    const size_t count = missing.size();
    missing.resize(std::min(count, kMaxNamed));
    return absl::UnavailableError(absl::StrCat(
        count == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "), count > kMaxNamed ? ", ..." : "",
        " of ", peers_.size(), " did not arrive within ", absl::FormatDuration(timeout_),
        "; look into the log of ", count == 1 ? "that rank" : "those ranks"));
  }

  Store* const store_;
  std::vector<std::optional<PeerInfo>> peers_;
  const absl::Duration timeout_;
  const absl::Time deadline_;
  int64_t generation_ = 0;
  int64_t next_ = 1;  // the note to read next; they count from 1
  std::vector<int64_t> gaps_;
  absl::Status verdict_;
};

}  // namespace

absl::Status CompareFingerprints(const std::vector<PeerInfo>& peers) {
  std::set<std::string> seen;
  std::vector<const PeerInfo*> kinds;  // the first rank of each fingerprint
  for (const PeerInfo& peer : peers) {
    if (seen.insert(peer.fingerprint).second) kinds.push_back(&peer);
  }
  if (kinds.size() <= 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("ranks ", Difference(kinds), "; give every rank the same plan and options"));
}

absl::StatusOr<Roster> LeadMeeting(Store* store, const PeerInfo& self, int world_size,
                                   absl::Duration timeout) {
  return Leader(store, self, world_size, timeout).Run();
}

namespace {

// Waits for rank 0's answer to a greeting. The meeting may be over, and another process have this rank's
// seat: then nobody answers, until the store is gone with rank 0. One that ran here and has ended claims
// nothing: the store may serve several runs, one after the other.
absl::StatusOr<std::string> AwaitAnswer(Store* store, const PeerInfo& self, const std::string& key,
                                        absl::Time deadline) {
  std::optional<PeerInfo> rival;
  for (;;) {
    absl::StatusOr<std::string> answer = store->Get(key, std::min(deadline, absl::Now() + kSlice));
    if (answer.ok()) return answer;
    const bool over = !absl::IsDeadlineExceeded(answer.status()) || absl::Now() >= deadline;
    if (over) return rival.has_value() ? ClaimedTwice(*rival, self) : answer.status();
    FT_ASSIGN_OR_RETURN(const int64_t newest, store->Add(kGeneration, 0));
    FT_ASSIGN_OR_RETURN(const bool decided, store->Check({RosterKey(newest)}));
    if (!decided) continue;
    FT_ASSIGN_OR_RETURN(const std::string text, store->Get(RosterKey(newest), deadline));
    FT_ASSIGN_OR_RETURN(const Roster roster, DecodeRoster(newest, text));
    rival = FindRival(roster, self);
    if (rival.has_value() && StillRuns(*rival, self)) return ClaimedTwice(*rival, self);
    if (rival.has_value() && IsHere(*rival, self)) rival.reset();
  }
}

}  // namespace

absl::StatusOr<Roster> FollowMeeting(Store* store, const PeerInfo& self, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const absl::Status no_leader = absl::UnavailableError(
      absl::StrCat("rank 0 did not arrive within ", absl::FormatDuration(timeout), "; look into its log"));
  for (;;) {
    const std::string nonce = RandomNonce();
    FT_RETURN_IF_ERROR(Post(store, absl::StrCat("hello ", nonce)));
    auto ack = AwaitAnswer(store, self, absl::StrCat("ack/", nonce), deadline);
    if (absl::IsDeadlineExceeded(ack.status())) return no_leader;
    int64_t generation = 0;
    if (!ack.ok()) return ack.status();
    if (!absl::SimpleAtoi(*ack, &generation))
      return absl::InternalError("the store holds something else than a generation");
    FT_RETURN_IF_ERROR(Post(store, absl::StrCat("facts ", generation, " ", EncodePeers({self}))));

    // Rank 0 came later than this one, perhaps; it decides within its own time.
    const absl::Time decided = absl::Now() + timeout + absl::Seconds(5);
    int64_t newest = generation;
    while (newest == generation) {
      auto text = store->Get(RosterKey(generation), std::min(decided, absl::Now() + kSlice));
      if (text.ok()) {
        FT_ASSIGN_OR_RETURN(Roster roster, DecodeRoster(generation, *text));
        const std::optional<PeerInfo> rival = FindRival(roster, self);
        if (roster.verdict.ok() && rival.has_value()) return ClaimedTwice(*rival, self);
        return roster;
      }
      if (!absl::IsDeadlineExceeded(text.status())) return text.status();
      if (absl::Now() >= decided) return no_leader;
      FT_ASSIGN_OR_RETURN(newest, store->Add(kGeneration, 0));
    }
    // The rank 0 that answered was a remainder of an earlier attempt: greet the new one.
  }
}

}  // namespace ft
