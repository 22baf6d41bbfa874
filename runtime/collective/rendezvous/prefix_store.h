// A store within a store: all keys under one prefix.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

class PrefixStore : public Store {
 public:
  // `store` must outlive this.
  PrefixStore(Store* store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    return store_->Set(Full(key), value);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Time deadline) override {
    return store_->Get(Full(key), deadline);
  }
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override {
    return store_->Add(Full(key), delta);
  }
  absl::Status Wait(absl::Span<const std::string> keys, absl::Time deadline) override {
    return store_->Wait(Full(keys), deadline);
  }
  absl::StatusOr<bool> Check(absl::Span<const std::string> keys) override {
    return store_->Check(Full(keys));
  }

 private:
  std::string Full(absl::string_view key) const { return absl::StrCat(prefix_, "/", key); }
  std::vector<std::string> Full(absl::Span<const std::string> keys) const {
    std::vector<std::string> full;
    for (const std::string& key : keys) full.push_back(Full(key));
    return full;
  }

  Store* const store_;
  const std::string prefix_;
};

}  // namespace ft
