// How bytes of pictures become floats.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ft {

// (x * rescale_factor - image_mean[c]) / image_std[c] of channel c, in f32, step by step.
class PixelScale {
 public:
  // Of a preprocessor_config.json of transformers, for pictures of so many channels: do_rescale (true),
  // rescale_factor (1/255), do_normalize (true), image_mean and image_std, a number each or one for all
  // channels. What makes pictures of another size is passed over: they have theirs. Errors: those of
  // MappedFile::Open; InvalidArgument, one line, for what is no such file.
  static absl::StatusOr<PixelScale> Read(const std::string& path, int64_t channels);

  // `count` bytes, of which each channel has count / channels, to as many floats. Allocates nothing.
  void Scale(const uint8_t* bytes, int64_t count, float* out) const;

 private:
  std::vector<std::array<float, 256>> tables_;  // of each channel
};

}  // namespace ft
