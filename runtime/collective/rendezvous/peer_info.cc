#include "runtime/collective/rendezvous/peer_info.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ft {
namespace {

using Json = nlohmann::json;

// Labels and host names may hold bytes that are not UTF-8.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool Text(const Json& object, const char* key, std::string* out) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  *out = found->get<std::string>();
  return true;
}

template <typename T>
bool Number(const Json& object, const char* key, T* out) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  *out = found->get<T>();
  return true;
}

bool Decode(const Json& object, PeerInfo* peer) {
  return object.is_object() && Number(object, "rank", &peer->rank) &&
         Text(object, "hostname", &peer->hostname) && Text(object, "host_id", &peer->host_id) &&
         Number(object, "pid", &peer->pid) && Text(object, "address", &peer->address) &&
         Text(object, "external_address", &peer->external_address) &&
         Text(object, "fingerprint", &peer->fingerprint) && Text(object, "label", &peer->label) &&
         Number(object, "restart_count", &peer->restart_count) &&
         Text(object, "instruction_set", &peer->instruction_set) && Text(object, "machine", &peer->machine) &&
         Text(object, "gpu", &peer->gpu) && Number(object, "gpu_page_bytes", &peer->gpu_page_bytes);
}

}  // namespace

std::string EncodePeers(const std::vector<PeerInfo>& peers) {
  Json array = Json::array();
  for (const PeerInfo& peer : peers) {
    array.push_back({{"rank", peer.rank},
                     {"hostname", peer.hostname},
                     {"host_id", peer.host_id},
                     {"pid", peer.pid},
                     {"address", peer.address},
                     {"external_address", peer.external_address},
                     {"fingerprint", peer.fingerprint},
                     {"label", peer.label},
                     {"restart_count", peer.restart_count},
                     {"instruction_set", peer.instruction_set},
                     {"machine", peer.machine},
                     {"gpu", peer.gpu},
                     {"gpu_page_bytes", peer.gpu_page_bytes}});
  }
  return Dump(array);
}

absl::StatusOr<std::vector<PeerInfo>> DecodePeers(absl::string_view text) {
  const Json array = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const absl::Status foreign = absl::InternalError("the store holds something else than facts about ranks");
  if (!array.is_array()) return foreign;
  std::vector<PeerInfo> peers;
  for (const Json& object : array) {
    if (!Decode(object, &peers.emplace_back())) return foreign;
  }
  return peers;
}

std::string Whereabouts(const PeerInfo& peer) {
  return absl::StrCat("pid ", peer.pid, " on ", peer.hostname);
}

}  // namespace ft
