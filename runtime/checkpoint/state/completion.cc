#include "runtime/checkpoint/state/completion.h"

#include <utility>

#include "runtime/base/status_macros.h"

namespace ft {

absl::Status CompleteCheckpoint(const FileLayout& layout, const std::string& folder, const ExtraFiles& extra,
                                WrittenShare written, proto::Manifest manifest) {
  FT_RETURN_IF_ERROR(WriteFragments(layout, folder, std::move(written.fragments)));
  FT_ASSIGN_OR_RETURN(const std::vector<FileSums> files,
                      JoinSums(static_cast<size_t>(layout.num_files()), std::move(written.sums)));
  manifest.clear_state();
  manifest.clear_files();
  SetLayout(layout, manifest);
  manifest.set_version(kManifestVersion);
  manifest.set_block_bytes(kSumBlockBytes);
  for (int f = 0; f < layout.num_files(); ++f)
    AddFile(layout.FileName(f), files[static_cast<size_t>(f)], manifest);
  for (const auto& [name, contents] : extra) {
    FT_RETURN_IF_ERROR(WriteSyncedFile(folder, name, contents));
    SegmentSums sums;
    sums.Add(0, 0, contents.data(), contents.size());
    FT_ASSIGN_OR_RETURN(const std::vector<FileSums> joined, JoinSums(1, sums.segments()));
    AddFile(name, joined.front(), manifest);
  }
  FT_ASSIGN_OR_RETURN(const std::string text, ManifestText(manifest));
  return WriteSyncedFile(folder, kManifestName, text);
}

}  // namespace ft
