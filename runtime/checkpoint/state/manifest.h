// manifest.json of a checkpoint: what it is of, and the checksums of its files and of itself.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/block_sums.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/manifest.pb.h"

namespace ft {

inline constexpr uint32_t kManifestVersion = 1;
inline constexpr char kManifestName[] = "manifest.json";
// Larger ones are refused unread. That of 70B parameters on 512 ranks has some 7 MB.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 29;

// JSON; its last member is "checksum", the CRC-32 of all that stands before. Equal manifests give equal
// bytes.
absl::StatusOr<std::string> ManifestText(const proto::Manifest& manifest);

// `name` is for messages. Errors: DataLoss when the checksum is missing or wrong; InvalidArgument for another
// version, or JSON that is no manifest.
absl::StatusOr<proto::Manifest> ParseManifest(std::string_view text, std::string_view name);

void SetLayout(const FileLayout& layout, proto::Manifest& manifest);
// Errors: InvalidArgument for a state that is not possible (StateLayout::Check) or an unknown type; those of
// FileLayout::Create.
absl::StatusOr<FileLayout> LayoutOf(const proto::Manifest& manifest);

void AddFile(std::string_view name, const FileSums& sums, proto::Manifest& manifest);
// Of a file of the manifest. Errors: InvalidArgument when it does not have a sum for each block.
absl::StatusOr<FileSums> SumsOf(const proto::Manifest::File& file, uint64_t block_bytes);

}  // namespace ft
