#include "runtime/data/token_examples.h"

#include <numeric>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/data/token_file.h"

namespace ft {
namespace {

class TokenExamples final : public DataFile {
 public:
  TokenExamples(TokenFile file, const DataInputs& inputs) : file_(std::move(file)), inputs_(inputs) {}

  const std::string& path() const override { return file_.path(); }
  DataFormat format() const override { return file_.format(); }
  int64_t num_examples() const override { return file_.num_sequences(); }
  int64_t num_tokens() const override { return file_.num_tokens(); }
  int token_bytes() const override { return file_.token_bytes(); }
  uint64_t bytes() const override { return file_.bytes(); }
  uint64_t content_hash() const override { return file_.content_hash(); }
  const std::string& doubt() const override { return file_.doubt(); }
  absl::Span<const uint8_t> Constant(size_t) const override { return {}; }

  void Read(int64_t index, absl::Span<void* const> rows) const override {
    int32_t *tokens = nullptr, *targets = nullptr;
    for (size_t i = 0; i < inputs_.inputs.size(); ++i) {
      auto* const row = static_cast<int32_t*>(rows[i]);
      const proto::Input::Filling filling = inputs_.inputs[i].filling();
      if (filling == proto::Input::TOKENS) tokens = row;
      if (filling == proto::Input::TARGETS) targets = row;
      if (filling == proto::Input::POSITIONS) std::iota(row, row + inputs_.seq_len, 0);
    }
    file_.ReadSequence(index, tokens, targets);
  }

 private:
  TokenFile file_;
  const DataInputs& inputs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DataFile>> OpenTokenExamples(const std::string& path, const DataInputs& inputs,
                                                            DataFormat format) {
  FT_RETURN_IF_ERROR(CheckTokensFill(inputs, path));
  FT_ASSIGN_OR_RETURN(TokenFile file, OpenTokenFile(path, inputs.vocab_size, inputs.seq_len, format));
  return std::make_unique<TokenExamples>(std::move(file), inputs);
}

}  // namespace ft
