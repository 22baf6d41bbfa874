#include "runtime/collective/rendezvous/store_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ft {
namespace {

constexpr size_t kMaxStoreBytes = size_t{1} << 30;
constexpr size_t kMaxReplyBytes = size_t{64} << 20;
constexpr size_t kMaxRequestBytes = size_t{64} << 20;

}  // namespace

// Takes fields off the front of what a client sent. After a failed read, `malformed` tells a bad request from
// a short one.
class StoreEngine::Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  bool Number(T* value) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool Key(absl::string_view* key) { return String(kStoreMaxKeyBytes, key); }
  bool Value(absl::string_view* value) { return String(kStoreMaxValueBytes, value); }
  bool Keys(std::vector<std::string>* keys) {
    uint64_t count = 0;
    if (!Number(&count)) return false;
    if (count > kStoreMaxKeys) return Malformed();
    absl::string_view key;
    for (uint64_t i = 0; i < count; ++i) {
      if (!Key(&key)) return false;
      keys->emplace_back(key);
    }
    return true;
  }
  bool Malformed() {
    malformed_ = true;
    return false;
  }
  Outcome Failure() const { return malformed_ ? Outcome::kMalformed : Outcome::kIncomplete; }
  size_t consumed() const { return at_; }

 private:
  bool String(uint64_t limit, absl::string_view* text) {
    uint64_t size = 0;
    if (!Number(&size)) return false;
    if (size > limit) return Malformed();
    if (bytes_.size() - at_ < size) return false;
    *text = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }

  absl::string_view bytes_;
  size_t at_ = 0;
  bool malformed_ = false;
};

bool StoreEngine::Process(StoreSession* session) {
  size_t done = 0;
  Outcome outcome = Outcome::kDone;
  while (outcome == Outcome::kDone && done < session->in.size()) {
    Reader reader(absl::string_view(session->in).substr(done));
    outcome = ProcessOne(session, &reader);
    if (outcome == Outcome::kDone) done += reader.consumed();
  }
  session->in.erase(0, done);
  return outcome != Outcome::kMalformed && session->in.size() <= kMaxRequestBytes &&
         session->out.size() <= kMaxReplyBytes && bytes_ <= kMaxStoreBytes;
}

void StoreEngine::Remove(StoreSession* session) {
  for (const std::string& key : session->waiting_for) {
    auto found = waiters_.find(key);
    if (found == waiters_.end()) continue;
    std::erase(found->second, session);
    if (found->second.empty()) waiters_.erase(found);
  }
  session->waiting_for.clear();
  session->missing = 0;
}

StoreEngine::Outcome StoreEngine::ProcessOne(StoreSession* session, Reader* reader) {
  uint8_t byte = 0;
  if (!reader->Number(&byte)) return Outcome::kIncomplete;
  const auto type = static_cast<StoreRequest>(byte);
  if (type == StoreRequest::kValidate) return Validate(session, reader);
  if (!session->validated) return Outcome::kMalformed;
  switch (type) {
    case StoreRequest::kSet:
    case StoreRequest::kAppend:
      return Write(session, reader, type);
    case StoreRequest::kCompareSet:
      return CompareSet(session, reader);
    case StoreRequest::kAdd:
      return Add(session, reader);
    case StoreRequest::kGet:
    case StoreRequest::kCheck:
    case StoreRequest::kMultiGet:
    case StoreRequest::kGetNumKeys:
    case StoreRequest::kDeleteKey:
      return Read(session, reader, type);
    case StoreRequest::kWait:
      return Wait(session, reader);
    case StoreRequest::kMultiSet:
      return MultiSet(session, reader);
    case StoreRequest::kCancelWait:
      Remove(session);
      session->out += StoreMessage().U8(kStoreWaitCancelled).bytes();
      return Outcome::kDone;
    case StoreRequest::kPing: {
      uint32_t nonce = 0;
      if (!reader->Number(&nonce)) return reader->Failure();
      session->out += StoreMessage().U32(nonce).bytes();
      return Outcome::kDone;
    }
    case StoreRequest::kValidate:
      break;
  }
  return Outcome::kMalformed;
}

StoreEngine::Outcome StoreEngine::Validate(StoreSession* session, Reader* reader) {
  uint32_t magic = 0;
  if (!reader->Number(&magic)) return reader->Failure();
  session->validated = magic == kStoreMagic;
  return session->validated ? Outcome::kDone : Outcome::kMalformed;
}

StoreEngine::Outcome StoreEngine::Write(StoreSession* session, Reader* reader, StoreRequest type) {
  absl::string_view key, value;
  if (!reader->Key(&key) || !reader->Value(&value)) return reader->Failure();
  std::string stored(value);
  if (type == StoreRequest::kAppend) {
    stored = absl::StrCat(Lookup(key), value);
    if (stored.size() > kStoreMaxValueBytes) return Outcome::kMalformed;
  }
  Put(key, std::move(stored));
  return Outcome::kDone;
}

StoreEngine::Outcome StoreEngine::CompareSet(StoreSession* session, Reader* reader) {
  absl::string_view key, expected, desired;
  if (!reader->Key(&key) || !reader->Value(&expected) || !reader->Value(&desired)) return reader->Failure();
  const bool exists = Has(std::string(key));
  if (exists ? Lookup(key) == expected : expected.empty()) Put(key, std::string(desired));
  // A missing key and a non-empty expectation: nothing is stored, the expectation is echoed.
  session->out += StoreMessage().String(Has(std::string(key)) ? Lookup(key) : expected).bytes();
  return Outcome::kDone;
}

StoreEngine::Outcome StoreEngine::Add(StoreSession* session, Reader* reader) {
  absl::string_view key;
  int64_t delta = 0, now = 0;
  if (!reader->Key(&key) || !reader->Number(&delta)) return reader->Failure();
  if (Has(std::string(key)) && !absl::SimpleAtoi(Lookup(key), &now)) return Outcome::kMalformed;
  if (__builtin_add_overflow(now, delta, &now)) return Outcome::kMalformed;
  Put(key, absl::StrCat(now));
  session->out += StoreMessage().I64(now).bytes();
  return Outcome::kDone;
}

StoreEngine::Outcome StoreEngine::Read(StoreSession* session, Reader* reader, StoreRequest type) {
  StoreMessage reply;
  absl::string_view key;
  std::vector<std::string> keys;
  if (type == StoreRequest::kGet) {
    if (!reader->Key(&key)) return reader->Failure();
    reply.String(Lookup(key));
  } else if (type == StoreRequest::kGetNumKeys) {
    reply.I64(static_cast<int64_t>(values_.size()));
  } else if (type == StoreRequest::kDeleteKey) {
    if (!reader->Key(&key)) return reader->Failure();
    const size_t size = key.size() + Lookup(key).size();
    const bool erased = values_.erase(std::string(key)) > 0;
    if (erased) bytes_ -= size;
    reply.I64(erased ? 1 : 0);
  } else {
    if (!reader->Keys(&keys)) return reader->Failure();
    if (type == StoreRequest::kCheck) {
      const bool all = std::all_of(keys.begin(), keys.end(), [&](const auto& k) { return Has(k); });
      reply.U8(all ? kStorePresent : kStoreNotPresent);
    } else {
      for (const std::string& k : keys) {
        reply.String(Lookup(k));
        if (reply.bytes().size() > kMaxReplyBytes) return Outcome::kMalformed;
      }
    }
  }
  session->out += reply.bytes();
  return Outcome::kDone;
}

StoreEngine::Outcome StoreEngine::Wait(StoreSession* session, Reader* reader) {
  std::vector<std::string> keys;
  if (!reader->Keys(&keys)) return reader->Failure();
  Remove(session);
  for (std::string& key : keys) {
    if (Has(key)) continue;
    waiters_[key].push_back(session);
    session->waiting_for.push_back(std::move(key));
  }
  session->missing = session->waiting_for.size();
  if (session->missing == 0) session->out += StoreMessage().U8(kStoreStopWaiting).bytes();
  return Outcome::kDone;
}

StoreEngine::Outcome StoreEngine::MultiSet(StoreSession* session, Reader* reader) {
  int64_t count = 0;
  if (!reader->Number(&count)) return reader->Failure();
  if (count < 0 || static_cast<uint64_t>(count) > kStoreMaxKeys) return Outcome::kMalformed;
  std::vector<std::pair<absl::string_view, absl::string_view>> pairs(static_cast<size_t>(count));
  for (auto& [key, value] : pairs) {
    if (!reader->Key(&key) || !reader->Value(&value)) return reader->Failure();
  }
  for (const auto& [key, value] : pairs) Put(key, std::string(value));
  return Outcome::kDone;
}

void StoreEngine::Put(absl::string_view key, std::string value) {
  auto [entry, created] = values_.try_emplace(std::string(key));
  bytes_ += created ? key.size() + value.size() : value.size() - entry->second.size();
  entry->second = std::move(value);
  auto found = waiters_.find(entry->first);
  if (found == waiters_.end()) return;
  const std::vector<StoreSession*> woken = std::move(found->second);
  waiters_.erase(found);
  for (StoreSession* session : woken) {
    if (--session->missing > 0) continue;
    session->waiting_for.clear();
    session->out += StoreMessage().U8(kStoreStopWaiting).bytes();
  }
}

absl::string_view StoreEngine::Lookup(absl::string_view key) const {
  auto found = values_.find(std::string(key));
  return found == values_.end() ? absl::string_view() : absl::string_view(found->second);
}

}  // namespace ft
