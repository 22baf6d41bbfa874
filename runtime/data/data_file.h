// One file of examples, whatever it is made of.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "runtime/data/data_format.h"

namespace ft {

// A file, mapped, that has been checked against the inputs of a model. Thread-safe.
class DataFile {
 public:
  virtual ~DataFile() = default;

  virtual const std::string& path() const = 0;
  virtual DataFormat format() const = 0;      // never kAuto
  virtual int64_t num_examples() const = 0;   // >= 1; sequences, where it holds tokens
  virtual int64_t num_tokens() const = 0;     // 0 where it holds no tokens
  virtual int token_bytes() const = 0;        // 0 where it holds no tokens
  virtual uint64_t bytes() const = 0;         // of the file
  virtual uint64_t content_hash() const = 0;  // ContentHash of all its bytes
  // What speaks against the format that was asked for; empty: nothing.
  virtual const std::string& doubt() const = 0;

  // Of what is packed, or an example each; count 0: the file is one stream, or holds no documents.
  struct Documents {
    int64_t count = 0;
    int64_t filled = 0, places = 0;  // of all examples: tokens, and with padding
    bool packed = false;
  };
  virtual Documents documents() const { return {}; }

  // Writes example `index`, in [0, num_examples()): that of input i to rows[i]. Constants are left alone.
  // Allocates nothing.
  virtual void Read(int64_t index, absl::Span<void* const> rows) const = 0;

  // Of input i, which is a constant.
  virtual absl::Span<const uint8_t> Constant(size_t i) const = 0;
};

}  // namespace ft
