// Reads the config.json of a model of transformers, key by key, and remembers which key said what.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/model_facts.h"

namespace ft {

// Elements that a list of a config.json has at most, one for each layer for example. Of a model of more
// layers none is made; that many are a fault of their own.
inline constexpr int64_t kMaxConfigList = 1 << 16;

// The descriptions of families (config_families.h) call it once for each key that they understand. What
// cannot be read is a fault of its own, and the fact that it would have given is unknown.
class ConfigReader {
 public:
  // `config` is an object and outlives the reader. `model_type` is of the file.
  ConfigReader(const nlohmann::json& config, std::string model_type);

  const ModelFacts& facts() const { return facts_; }
  const std::string& model_type() const { return facts_.model_type; }

  // The key's value becomes the fact. Absent: `absent`, the default of the family's config class; null:
  // `null`, and a fault without one. Numbers that are sizes must be positive.
  void Read(std::string_view key, int64_t ModelFacts::* fact, int64_t absent,
            std::optional<int64_t> null = {});
  void Read(std::string_view key, double ModelFacts::* fact, double absent, std::optional<double> null = {});
  void Read(std::string_view key, bool ModelFacts::* fact, bool absent);
  void ReadActivation(std::string_view key, std::string_view absent);

  // A key that is not yet a fact. Nothing when it is absent, null, or a fault, which is noted.
  std::optional<int64_t> Number(std::string_view key);
  std::optional<double> Real(std::string_view key);
  std::optional<bool> Flag(std::string_view key);
  std::optional<std::string> Text(std::string_view key);
  std::optional<std::vector<int64_t>> Numbers(std::string_view key);
  std::optional<std::vector<double>> Reals(std::string_view key);
  std::optional<std::vector<std::string>> Texts(std::string_view key);
  std::optional<int64_t> Size(std::string_view key);  // keys of an object
  bool IsNull(std::string_view key) const;
  bool Has(std::string_view key) const;

  // From here to Leave() keys are those of the object under `key`, all of which must be understood too.
  // False, and nothing is entered, when there is no such object. Objects of objects are entered from inside.
  bool Enter(std::string_view key);
  void Leave();

  // The fact follows from these keys, or from the model_type alone.
  template <typename T>
  void Set(T ModelFacts::* fact, T value, std::string_view key = {}) {
    facts_.*fact = std::move(value);
    sources_[&FactOf(fact)] = key.empty() ? "" : FullName(key);
  }
  // Whether a value could be read, so that others may be computed from it.
  bool Knows(FactMember fact) const { return !unknown_.contains(&FactOf(fact)); }
  void SetUnknown(FactMember fact) { unknown_.insert(&FactOf(fact)); }

  // Keys that change no result of the family.
  void Ignore(std::initializer_list<std::string_view> keys);

  void Fault(std::string text) { faults_.push_back(std::move(text)); }

  // Where a fact comes from, for people: `rms_norm_eps is 1e-06`, `head_dim is null (head_size 64)`,
  // `sliding_window is 4096 (it is not there: the default of a mistral)`, `qk_norm is "head" in every qwen3`.
  std::string Origin(const FactField& field) const;

  // After all reading: the faults, in the order of the keys' reading, and then each key that nobody
  // understood and that does not say "nothing" (null, false, empty).
  std::vector<std::string> TakeFaults();

 private:
  const nlohmann::json* Find(std::string_view key);
  template <typename T>
  std::optional<std::vector<T>> List(std::string_view key, std::string_view expected);
  std::string FullName(std::string_view key) const { return prefix_ + std::string(key); }
  void WrongType(std::string_view key, std::string_view expected);
  void FindUnknownKeys(const nlohmann::json& object, const std::string& prefix);

  const nlohmann::json& config_;
  const nlohmann::json* object_;                                        // what keys are looked up in
  std::string prefix_;                                                  // of it: "rope_parameters."
  std::vector<std::pair<const nlohmann::json*, std::string>> outside_;  // both, of the objects around it
  ModelFacts facts_;
  std::set<std::string, std::less<>> understood_;    // full names
  std::set<std::string, std::less<>> entered_;       // those of objects
  std::map<const FactField*, std::string> sources_;  // fact -> full name of its key, or empty
  std::set<const FactField*> unknown_;
  std::vector<std::string> faults_;
};

// A value of a file as it may be shown: JSON in ASCII, shortened.
std::string JsonText(const nlohmann::json& value);
std::string QuotedText(const std::string& text);

}  // namespace ft
