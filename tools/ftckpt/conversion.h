// Makes a checkpoint, or a folder of Hugging Face, of a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/plan/mesh.h"

namespace ft::ckpt {

// A checkpoint may say that it is of more ranks; nobody wants so many files of one that was made up.
inline constexpr int kMostRankFiles = 1 << 16;

struct ConversionRequest {
  std::string destination;
  std::optional<CheckpointType> type = {};  // absent: the source's
  bool hugging_face = false;                // weights alone, without a manifest, in files of type full
  std::optional<DType> weights = {};        // absent: as they are
  std::optional<DType> optimizer = {};      // likewise
  std::optional<Mesh> mesh = {};            // or
  int ranks = 0;                            // 0: as many as the source has
  std::optional<uint64_t> max_file_bytes = {};
};

struct Converted {
  uint64_t bytes = 0;
  int files = 0;
  std::string form;                // "sharded for 3 ranks"
  std::vector<std::string> notes;  // what a person should know
};

// Streams: memory is some chunks and what the manifest says, whatever the size of the state. The source is
// only read, and every byte on the way is verified; the destination is published whole, or nothing of it is
// left. Errors: InvalidArgument for what cannot be made of this checkpoint; AlreadyExists for a destination
// that is there; those of CheckpointReader::Read; the system's (exit status 74).
absl::StatusOr<Converted> ConvertCheckpoint(const ConversionRequest& request, CheckpointReader& source);

}  // namespace ft::ckpt
