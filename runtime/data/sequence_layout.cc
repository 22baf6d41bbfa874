#include "runtime/data/sequence_layout.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/status_macros.h"

namespace ft {
namespace {

template <typename... Args>
absl::Status Invalid(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format("'{}' {}", path, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace

std::string_view Name(SequenceWay way) {
  switch (way) {
    case SequenceWay::kStream:
      return "stream";
    case SequenceWay::kPacked:
      return "packed";
    case SequenceWay::kDocuments:
      return "documents";
  }
  return "?";
}

absl::Status SequenceLayout::TakeStream(const TokenRow& row, const std::string& path) {
  if (row.count < seq_len_ + beyond_)
    return Invalid(path, "is too short: it holds {} tokens, and one sequence of length {} needs {}",
                   row.count, seq_len_, seq_len_ + beyond_);
  num_sequences_ = (row.count - beyond_) / seq_len_;
  num_filled_ = num_sequences_ * seq_len_;
  return absl::OkStatus();
}

absl::Status SequenceLayout::TakeDocuments(const std::string& path) {
  for (int64_t i = 0; i < num_documents(); ++i) {
    const int64_t places = PlacesOf(i);
    if (places > seq_len_)
      return Invalid(
          path,
          "has in document {} {} tokens, of which one example of the model takes {}; cut documents "
          "when tokenizing: ftc tokenize --max-length={}",
          i, places + beyond_, seq_len_ + beyond_, seq_len_ + beyond_);
    if (places < 1)
      return Invalid(path, "has in document {} one token, which nothing is to predict; leave it out", i);
    num_filled_ += places;
  }
  num_sequences_ = num_documents();
  return absl::OkStatus();
}

absl::Status SequenceLayout::Pack(const std::string& path) {
  if (num_documents() >= int64_t{UINT32_MAX})
    return Invalid(path, "has {} documents, too many to pack; split the file", num_documents());
  std::vector<uint32_t> lengths(static_cast<size_t>(num_documents()));
  for (int64_t i = 0; i < num_documents(); ++i) {
    const int64_t places = PlacesOf(i);
    for (int64_t at = 0; at + seq_len_ <= places; at += seq_len_)
      whole_.push_back(static_cast<uint64_t>(Begin(i) + at));
    lengths[static_cast<size_t>(i)] = static_cast<uint32_t>(places % seq_len_);
    num_filled_ += places;
  }
  packs_ = PackBestFit(lengths, static_cast<uint32_t>(seq_len_));
  num_sequences_ = static_cast<int64_t>(whole_.size()) + packs_.count();
  if (num_sequences_ == 0) return Invalid(path, "has no document of two tokens or more: nothing to predict");
  return absl::OkStatus();
}

absl::StatusOr<SequenceLayout> SequenceLayout::Make(const TokenRow& row, SequenceWay way, int64_t seq_len,
                                                    int64_t beyond, const std::string& path) {
  SequenceLayout layout(row, way, seq_len, beyond);
  switch (way) {
    case SequenceWay::kStream:
      FT_RETURN_IF_ERROR(layout.TakeStream(row, path));
      break;
    case SequenceWay::kPacked:
      FT_RETURN_IF_ERROR(layout.Pack(path));
      break;
    case SequenceWay::kDocuments:
      FT_RETURN_IF_ERROR(layout.TakeDocuments(path));
      break;
  }
  return layout;
}

}  // namespace ft
