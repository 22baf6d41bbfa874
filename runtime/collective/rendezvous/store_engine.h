// What a TCPStore server does with the bytes of its clients, without the sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/collective/rendezvous/tcp_store_protocol.h"

namespace ft {

// One client.
struct StoreSession {
  std::string in;   // received, not yet understood
  std::string out;  // to be sent
  bool validated = false;
  size_t missing = 0;                    // keys that its WAIT still lacks; 0: not waiting
  std::vector<std::string> waiting_for;  // those keys
};

class StoreEngine {
 public:
  // Handles all complete requests in session->in and appends the replies to `out`, of other sessions too when
  // a key they wait for comes to be. Returns false when the client breaks the protocol or its limits:
  // disconnect it.
  bool Process(StoreSession* session);

  // Forgets a session that is about to go.
  void Remove(StoreSession* session);

 private:
  class Reader;
  enum class Outcome { kDone, kIncomplete, kMalformed };

  Outcome ProcessOne(StoreSession* session, Reader* reader);
  Outcome Validate(StoreSession* session, Reader* reader);
  Outcome Write(StoreSession* session, Reader* reader, StoreRequest type);
  Outcome CompareSet(StoreSession* session, Reader* reader);
  Outcome Add(StoreSession* session, Reader* reader);
  Outcome Read(StoreSession* session, Reader* reader, StoreRequest type);
  Outcome Wait(StoreSession* session, Reader* reader);
  Outcome MultiSet(StoreSession* session, Reader* reader);

  void Put(absl::string_view key, std::string value);
  absl::string_view Lookup(absl::string_view key) const;
  bool Has(const std::string& key) const { return values_.contains(key); }

  std::unordered_map<std::string, std::string> values_;
  size_t bytes_ = 0;  // of all keys and values
  std::unordered_map<std::string, std::vector<StoreSession*>> waiters_;
};

}  // namespace ft
