// Which bytes of which files of a checkpoint hold what of the state.
//
// A function of the state's layout and the type of the checkpoint alone. Writing and reading go through it,
// and nothing that a file says about itself is taken in its place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors_dtype.h"
#include "runtime/checkpoint/state/state_layout.h"

namespace ft {

// --state-dict-type.
//   full     whole tensors under Hugging Face's names, weights and optimizer in files of their own
//   sharded  a file for each rank, with what it saves of each tensor
//   local    a file for each rank, with what it saves of each unit's flat buffer
enum class CheckpointType { kFull, kSharded, kLocal };

std::string_view Name(CheckpointType type);
// InvalidArgument for any other word.
absl::StatusOr<CheckpointType> ParseCheckpointType(std::string_view word);

// As files name it.
SafetensorsDType DTypeInFile(DType dtype);

// Of a parameter in a role: "exp_avg/<parameter>"; of weights the parameter's own.
std::string TensorName(std::string_view role, const std::string& parameter);

// A tensor of the state: all of one parameter in one role, or all of a unit's flat buffer.
struct LogicalTensor {
  std::string name;            // the parameter's; "exp_avg/<parameter>" for states of the optimizer
  std::vector<int64_t> shape;  // of the whole tensor
  uint32_t buffer = 0;         // of StateLayout::buffers
  ElementRange range;          // in the unit
};

// A tensor, or a part of one, in a file.
struct PlacedTensor {
  uint32_t tensor = 0;  // of FileLayout::tensors()
  ElementRange range;   // in the unit
  uint64_t offset = 0;  // bytes from the beginning of the file
};

struct LayoutFile {
  std::string name;
  std::string head;  // length and header of the safetensors format
  uint64_t bytes = 0;
  std::vector<PlacedTensor> placed;  // by offset; no holes
};

// Bytes of a file that are elements of one buffer.
struct Extent {
  uint32_t file = 0;
  uint64_t offset = 0;  // bytes from the beginning of the file
  uint64_t bytes = 0;
  uint32_t buffer = 0;
  uint64_t element = 0;  // the first, in the unit
};

class FileLayout {
 public:
  static constexpr uint64_t kMaxFileBytes = 5'000'000'000;  // of tensors in a file of type full

  // `state` must have passed Check. Errors: InvalidArgument when two tensors would have one name, or one that
  // is not UTF-8.
  static absl::StatusOr<FileLayout> Create(StateLayout state, CheckpointType type,
                                           uint64_t max_file_bytes = kMaxFileBytes);

  const StateLayout& state() const { return state_; }
  CheckpointType type() const { return type_; }
  uint64_t max_file_bytes() const { return max_file_bytes_; }
  const std::vector<LogicalTensor>& tensors() const { return tensors_; }
  // -1: none.
  int FindTensor(std::string_view name) const;

  int num_files() const;
  std::string FileName(int file) const;
  // Made anew by each call for a file of a rank: heads of thousands of ranks are large.
  LayoutFile File(int file) const;
  // The rank that writes the file's head.
  int HeadWriter(int file) const { return file % state_.world_size(); }

  // What `rank` writes, without heads, by file and offset. What lies together in the file and in the buffer
  // is one extent.
  std::vector<Extent> WrittenBy(int rank) const;

  // Where elements `range` (in the unit) of a tensor lie, by element. Remembers places in files of ranks,
  // hence not const; not thread-safe.
  std::vector<Extent> Find(uint32_t tensor, ElementRange range);

 private:
  FileLayout(StateLayout state, CheckpointType type, uint64_t max_file_bytes)
      : state_(std::move(state)), type_(type), max_file_bytes_(max_file_bytes) {}
  void ListTensors();
  absl::Status CheckNames() const;
  void FillFullFiles();
  LayoutFile RankFile(int rank) const;
  std::vector<Extent> Joined(const std::vector<Extent>& extents) const;
  std::vector<PlacedTensor> PartsOf(int rank) const;
  void AddHead(LayoutFile& file) const;
  uint64_t ElementBytes(uint32_t tensor) const;

  StateLayout state_;
  CheckpointType type_;
  uint64_t max_file_bytes_;
  std::vector<LogicalTensor> tensors_;                // by buffer and range
  std::vector<std::pair<size_t, size_t>> of_buffer_;  // [first, last) of tensors_, by buffer
  std::map<std::string, uint32_t, std::less<>> by_name_;
  std::vector<LayoutFile> full_;                                 // type full
  std::vector<std::pair<uint32_t, uint64_t>> full_place_;        // file and offset, by tensor
  std::map<int, std::map<uint32_t, PlacedTensor>> rank_places_;  // by rank and tensor, those asked for
};

}  // namespace ft
