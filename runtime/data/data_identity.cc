#include "runtime/data/data_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/base/content_hash.h"
#include "runtime/base/printable.h"
#include "runtime/data/source_mix.h"

namespace ft {
namespace {

std::string FileName(const FileIdentity& file) {
  return std::filesystem::path(file.path).filename().native();
}

bool SameContents(const FileIdentity& a, const FileIdentity& b) {
  return a.bytes == b.bytes && a.content_hash == b.content_hash;
}

std::string FormatText(const FileIdentity& file) {
  if (file.token_bytes == 0) return std::string(Name(file.format));
  return fmt::format("{} of {} byte{} a token{}{}", Name(file.format), file.token_bytes,
                     file.token_bytes == 1 ? "" : "s", file.way.empty() ? "" : ", ", file.way);
}

const FileIdentity* FindContents(const std::vector<FileIdentity>& files, const FileIdentity& file) {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const auto& other) { return SameContents(file, other); });
  return found == files.end() ? nullptr : &*found;
}

// The file that has the name of `file` now, if there is one; of several the one at its place, if it is that.
const FileIdentity* FindName(const std::vector<FileIdentity>& files, const FileIdentity& file, size_t place) {
  const auto has_name = [&](const FileIdentity& other) { return FileName(other) == FileName(file); };
  if (place < files.size() && has_name(files[place])) return &files[place];
  const auto found = std::find_if(files.begin(), files.end(), has_name);
  return found == files.end() ? nullptr : &*found;
}

// `was` is not among the files any more.
std::string Gone(const FileIdentity& was, const FileIdentity* now) {
  if (now == nullptr) return fmt::format("{} is missing", Quote(was.path));
  if (was.bytes != now->bytes)
    return fmt::format("{} has {} bytes, it had {}", Quote(now->path), now->bytes, was.bytes);
  return fmt::format("{} holds something else than it did, in as many bytes (hash {:016x}, it was {:016x})",
                     Quote(now->path), now->content_hash, was.content_hash);
}

// The first difference of files that follow each other.
std::string FilesChange(const std::vector<FileIdentity>& saved, const std::vector<FileIdentity>& now) {
  for (size_t i = 0; i < std::max(saved.size(), now.size()); ++i) {
    if (i >= saved.size()) return fmt::format("{} is new", Quote(now[i].path));
    const FileIdentity& was = saved[i];
    if (i < now.size() && SameContents(was, now[i])) {
      if (was.format == now[i].format && was.token_bytes == now[i].token_bytes && was.way == now[i].way)
        continue;
      return fmt::format("{} is read as {}, it was read as {}", Quote(now[i].path), FormatText(now[i]),
                         FormatText(was));
    }
    const FileIdentity* elsewhere = FindContents(now, was);
    if (elsewhere == nullptr) return Gone(was, FindName(now, was, i));
    if (i >= now.size() || FindContents(saved, now[i]) != nullptr) {
      return fmt::format("the order of the files is another: {} was at place {}{}", Quote(elsewhere->path),
                         i + 1, i < now.size() ? fmt::format(", where {} is", Quote(now[i].path)) : "");
    }
    return fmt::format("{} is new, before {}", Quote(now[i].path), Quote(elsewhere->path));
  }
  return "";
}

std::vector<int64_t> IdentityShares(const DataIdentity& identity) {
  std::vector<double> weights;
  for (const SourceIdentity& source : identity.sources) weights.push_back(source.weight.value_or(1));
  const absl::StatusOr<std::vector<int64_t>> shares = SharesOf(weights);
  return shares.ok() ? *shares : std::vector<int64_t>(weights.size(), 0);
}

std::string WeightText(const SourceIdentity& source) {
  return source.weight.has_value() ? fmt::format("{}", *source.weight) : "none";
}

std::string SourceName(const SourceIdentity& source) {
  const std::string first = source.files.empty() ? "no file" : Quote(source.files[0].path);
  return source.files.size() > 1 ? first + " ..." : first;
}

}  // namespace

DataIdentity IdentityOf(const Dataset& dataset) {
  DataIdentity identity{.seq_len = dataset.seq_len(), .sources = {}};
  for (const DataSource& source : dataset.sources()) {
    SourceIdentity& made =
        identity.sources.emplace_back(SourceIdentity{.weight = source.weight, .files = {}});
    for (const auto& file : dataset.files(source)) {
      const DataFile::Documents documents = file->documents();
      made.files.push_back({.path = file->path(),
                            .bytes = file->bytes(),
                            .num_tokens = file->num_tokens(),
                            .format = file->format(),
                            .token_bytes = file->token_bytes(),
                            .num_examples = file->token_bytes() == 0 ? file->num_examples() : 0,
                            .way = documents.count == 0 ? ""
                                   : documents.packed   ? "packed"
                                                        : "documents",
                            .content_hash = file->content_hash()});
    }
  }
  return identity;
}

uint64_t IdentityHash(const DataIdentity& identity) {
  std::string text = fmt::format("seq_len {}\n", identity.seq_len);
  const std::vector<int64_t> shares = IdentityShares(identity);
  for (size_t i = 0; i < shares.size(); ++i) {
    text += fmt::format("source {}\n", shares[i]);
    for (const FileIdentity& file : identity.sources[i].files) {
      text += fmt::format("{} {} {} {} {:016x}{}\n", file.bytes, file.num_tokens + file.num_examples,
                          Name(file.format), file.token_bytes, file.content_hash, file.way);
    }
  }
  return ContentHashOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string DataChange(const DataIdentity& saved, const DataIdentity& now) {
  if (saved.seq_len != now.seq_len)
    return fmt::format("sequences have {} tokens, they had {}", now.seq_len, saved.seq_len);
  if (saved.sources.size() != now.sources.size())
    return fmt::format("there are {} sources of data, there were {}", now.sources.size(),
                       saved.sources.size());
  for (size_t i = 0; i < saved.sources.size(); ++i) {
    std::string change = FilesChange(saved.sources[i].files, now.sources[i].files);
    if (!change.empty() && saved.sources.size() > 1) change += fmt::format(" (source {})", i + 1);
    if (!change.empty()) return change;
  }
  const std::vector<int64_t> shares = IdentityShares(now), saved_shares = IdentityShares(saved);
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == saved_shares[i]) continue;
    return fmt::format("the weights are others: {} has {}, it had {}", SourceName(now.sources[i]),
                       WeightText(now.sources[i]), WeightText(saved.sources[i]));
  }
  return "";
}

}  // namespace ft
