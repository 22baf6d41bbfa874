#include "tools/ftexec/check/rank_facts.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"

namespace ft {
namespace {

using FactsJson = nlohmann::json;

// Paths and names may hold bytes that are not UTF-8.
std::string Dump(const FactsJson& json) {
  return json.dump(-1, ' ', false, FactsJson::error_handler_t::replace);
}

// Takes members of an object; notes when one is missing or of another kind.
class Taker {
 public:
  explicit Taker(const FactsJson& object) : object_(object), good_(object.is_object()) {}

  void Take(const char* key, std::string& out) {
    if (const FactsJson* value = Find(key, &FactsJson::is_string)) out = value->get<std::string>();
  }
  void Take(const char* key, bool& out) {
    if (const FactsJson* value = Find(key, &FactsJson::is_boolean)) out = value->get<bool>();
  }
  void Take(const char* key, int& out) {
    if (const FactsJson* value = Find(key, &FactsJson::is_number_integer)) out = value->get<int>();
  }
  void Take(const char* key, uint64_t& out) {
    if (const FactsJson* value = Find(key, &FactsJson::is_number_integer)) out = value->get<uint64_t>();
  }
  void Take(const char* key, double& out) {
    if (const FactsJson* value = Find(key, &FactsJson::is_number)) out = value->get<double>();
  }
  void Take(const char* key, std::optional<uint64_t>& out) {
    const auto found = object_.is_object() ? object_.find(key) : object_.end();
    if (good_ && found != object_.end() && found->is_null()) return out.reset();
    Take(key, out.emplace());
  }
  // `each(element)` says whether it could be taken.
  template <typename F>
  void TakeArray(const char* key, const F& each) {
    const FactsJson* array = Find(key, &FactsJson::is_array);
    if (array == nullptr) return;
    for (const FactsJson& element : *array) good_ = each(element) && good_;
  }

  bool good() const { return good_; }

 private:
  const FactsJson* Find(const char* key, bool (FactsJson::*is)() const noexcept) {
    const auto found = good_ ? object_.find(key) : object_.end();
    good_ = good_ && found != object_.end() && ((*found).*is)();
    return good_ ? &*found : nullptr;
  }

  const FactsJson& object_;
  bool good_;
};

FactsJson FindingsJson(const std::vector<Finding>& findings) {
  FactsJson array = FactsJson::array();
  for (const Finding& finding : findings) {
    array.push_back({{"check", finding.check},
                     {"verdict", static_cast<int>(finding.verdict)},
                     {"found", finding.found},
                     {"needed", finding.needed},
                     {"advice", finding.advice},
                     {"code", static_cast<int>(finding.code)}});
  }
  return array;
}

bool TakeFinding(const FactsJson& object, std::vector<Finding>& findings) {
  Finding& finding = findings.emplace_back();
  Taker taker(object);
  int verdict = 0, code = 0;
  taker.Take("check", finding.check);
  taker.Take("verdict", verdict);
  taker.Take("found", finding.found);
  taker.Take("needed", finding.needed);
  taker.Take("advice", finding.advice);
  taker.Take("code", code);
  finding.code = static_cast<absl::StatusCode>(code);
  if (verdict < 0 || verdict > static_cast<int>(Verdict::kFailure)) return false;
  finding.verdict = static_cast<Verdict>(verdict);
  return taker.good() && (finding.verdict == Verdict::kFailure) == (code != 0);
}

absl::Status Foreign() { return absl::InternalError("a rank sent something else than what it has checked"); }

FactsJson OptionalJson(const std::optional<uint64_t>& number) {
  return number.has_value() ? FactsJson(*number) : FactsJson();
}

}  // namespace

std::string Encode(const RankFacts& facts) {
  FactsJson pools = FactsJson::array();
  for (const MemoryPool& pool : facts.pools)
    pools.push_back({{"name", pool.name}, {"system", pool.system}, {"room", pool.room}});
  return Dump({{"findings", FindingsJson(facts.findings)},
               {"fingerprint", facts.fingerprint},
               {"label", facts.label},
               {"together", facts.together},
               {"has_device", facts.has_device},
               {"device", facts.device},
               {"threads", facts.threads},
               {"cpus", facts.cpus},
               {"memory_bytes", facts.memory_bytes},
               {"pools", std::move(pools)},
               {"address_space", OptionalJson(facts.address_space)},
               {"shm_bytes", facts.shm_bytes},
               {"shm_room", OptionalJson(facts.shm_room)}});
}

absl::StatusOr<RankFacts> DecodeFacts(const std::string& text) {
  const FactsJson object = FactsJson::parse(text, nullptr, /*allow_exceptions=*/false);
  RankFacts facts;
  Taker taker(object);
  taker.TakeArray("findings", [&](const FactsJson& each) { return TakeFinding(each, facts.findings); });
  taker.Take("fingerprint", facts.fingerprint);
  taker.Take("label", facts.label);
  taker.Take("together", facts.together);
  taker.Take("has_device", facts.has_device);
  taker.Take("device", facts.device);
  taker.Take("threads", facts.threads);
  taker.TakeArray("cpus", [&](const FactsJson& each) {
    if (each.is_number_integer()) facts.cpus.push_back(each.get<int>());
    return each.is_number_integer();
  });
  taker.Take("memory_bytes", facts.memory_bytes);
  taker.TakeArray("pools", [&](const FactsJson& each) {
    MemoryPool& pool = facts.pools.emplace_back();
    Taker of_pool(each);
    of_pool.Take("name", pool.name);
    of_pool.Take("system", pool.system);
    of_pool.Take("room", pool.room);
    return of_pool.good();
  });
  taker.Take("address_space", facts.address_space);
  taker.Take("shm_bytes", facts.shm_bytes);
  taker.Take("shm_room", facts.shm_room);
  if (!taker.good()) return Foreign();
  return facts;
}

std::string Encode(const RankResults& results) {
  return Dump({{"findings", FindingsJson(results.findings)},
               {"link_seconds", results.link_seconds},
               {"compute_seconds", results.compute_seconds}});
}

absl::StatusOr<RankResults> DecodeResults(const std::string& text) {
  const FactsJson object = FactsJson::parse(text, nullptr, /*allow_exceptions=*/false);
  RankResults results;
  Taker taker(object);
  taker.TakeArray("findings", [&](const FactsJson& each) { return TakeFinding(each, results.findings); });
  taker.TakeArray("link_seconds", [&](const FactsJson& each) {
    if (each.is_number()) results.link_seconds.push_back(each.get<double>());
    return each.is_number();
  });
  taker.Take("compute_seconds", results.compute_seconds);
  if (!taker.good()) return Foreign();
  return results;
}

}  // namespace ft
