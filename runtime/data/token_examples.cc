#include "runtime/data/token_examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/document_tensors.h"
#include "runtime/data/ftd_file.h"
#include "runtime/data/megatron_file.h"
#include "runtime/data/sequence_filler.h"
#include "runtime/data/token_file.h"
#include "runtime/data/tokenizer_check.h"

namespace ft {
namespace {

// A file that has been opened, whatever its format.
struct TokenSource {
  std::string path = {};
  DataFormat format = DataFormat::kAuto;
  uint64_t bytes = 0, content_hash = 0;
  std::string doubt = {};
  TokenRow row = {};
  std::shared_ptr<const FtdFile> ftd = {};      // where it is one
  std::shared_ptr<const void> owner = nullptr;  // of the tokens
};

class TokenExamples final : public DataFile {
 public:
  TokenExamples(TokenSource source, SequenceLayout layout, SequenceFiller filler, DocumentTensors tensors)
      : source_(std::move(source)),
        layout_(std::move(layout)),
        filler_(std::move(filler)),
        tensors_(std::move(tensors)) {}

  const std::string& path() const override { return source_.path; }
  DataFormat format() const override { return source_.format; }
  int64_t num_examples() const override { return layout_.num_sequences(); }
  int64_t num_tokens() const override { return source_.row.count; }
  int token_bytes() const override { return source_.row.token_bytes; }
  uint64_t bytes() const override { return source_.bytes; }
  uint64_t content_hash() const override { return source_.content_hash; }
  const std::string& doubt() const override { return source_.doubt; }
  absl::Span<const uint8_t> Constant(size_t) const override { return {}; }

  Documents documents() const override {
    if (layout_.way() == SequenceWay::kStream) return {};
    return {.count = static_cast<int64_t>(source_.row.documents.size()) - 1,
            .filled = layout_.num_filled(),
            .places = layout_.num_sequences() * layout_.seq_len(),
            .packed = layout_.way() == SequenceWay::kPacked};
  }

  void Read(int64_t index, absl::Span<void* const> rows) const override {
    filler_.Fill(layout_, index, rows);
    if (layout_.way() == SequenceWay::kDocuments) tensors_.Fill(index, rows);
  }

 private:
  TokenSource source_;
  SequenceLayout layout_;
  SequenceFiller filler_;
  DocumentTensors tensors_;
};

template <typename File>
TokenSource SourceOf(File opened, DataFormat format) {
  auto file = std::make_shared<const File>(std::move(opened));
  return {.path = file->path(),
          .format = format,
          .bytes = file->bytes(),
          .content_hash = file->content_hash(),
          .row = file->row(),
          .owner = file};
}

absl::StatusOr<TokenSource> OpenFtd(const std::string& path, const DataInputs& inputs) {
  FT_ASSIGN_OR_RETURN(FtdFile opened, FtdFile::Open(path));
  FT_RETURN_IF_ERROR(CheckTokenizer(opened, inputs.vocab_size, inputs.tokenizer_hash));
  const auto file = std::make_shared<const FtdFile>(std::move(opened));
  return TokenSource{.path = path,
                     .format = DataFormat::kFtd,
                     .bytes = file->bytes(),
                     .content_hash = file->content_hash(),
                     .row = {.data = file->token_data(),
                             .token_bytes = file->token_bytes(),
                             .count = file->num_tokens(),
                             .mask = file->mask(),
                             .documents = file->documents(),
                             .padding = static_cast<int32_t>(file->pad_token().value_or(0))},
                     .ftd = file};
}

absl::StatusOr<TokenSource> OpenSource(const std::string& path, const DataInputs& inputs, DataFormat format) {
  if (format == DataFormat::kFtd) return OpenFtd(path, inputs);
  if (format == DataFormat::kMegatron) {
    FT_ASSIGN_OR_RETURN(MegatronFile file, MegatronFile::Open(path, inputs.vocab_size));
    return SourceOf(std::move(file), format);
  }
  FT_ASSIGN_OR_RETURN(TokenFile file, OpenTokenFile(path, inputs.vocab_size, format));
  std::string doubt = file.doubt();
  const DataFormat found = file.format();
  TokenSource source = SourceOf(std::move(file), found);
  source.doubt = std::move(doubt);
  return source;
}

bool Takes(const DataInputs& inputs, proto::Input::Filling filling) {
  return std::any_of(inputs.inputs.begin(), inputs.inputs.end(),
                     [filling](const proto::Input& input) { return input.filling() == filling; });
}

// What is read beyond the places of a sequence: the targets of the last ones. Labels are the tokens
// themselves, and so is the whole of a document that has a class.
int64_t BeyondOf(const DataInputs& inputs, SequenceWay way) {
  if (Takes(inputs, proto::Input::TARGETS)) return 1;
  return Takes(inputs, proto::Input::LABELS) || way == SequenceWay::kDocuments ? 0 : 1;
}

absl::Status CheckNoTensors(const TokenSource& source, SequenceWay way) {
  if (source.ftd == nullptr || source.ftd->inputs().empty() || way == SequenceWay::kDocuments)
    return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "'{}' has a tensor 'input.{}' with a row for each document, but documents are {} for this model",
      source.path, source.ftd->inputs()[0].name,
      way == SequenceWay::kPacked ? "packed into sequences" : "parts of one stream"));
}

}  // namespace

SequenceWay WayOf(const DataInputs& inputs, bool has_documents, bool are_examples) {
  if (are_examples) return SequenceWay::kDocuments;
  if (Takes(inputs, proto::Input::SEGMENTS)) return SequenceWay::kPacked;
  const bool padded = Takes(inputs, proto::Input::LENGTHS) || Takes(inputs, proto::Input::ATTENTION_MASK);
  return padded && has_documents ? SequenceWay::kDocuments : SequenceWay::kStream;
}

absl::StatusOr<std::unique_ptr<DataFile>> OpenTokenExamples(const std::string& path, const DataInputs& inputs,
                                                            DataFormat format) {
  const bool may_have_documents = format == DataFormat::kFtd || format == DataFormat::kMegatron;
  FT_RETURN_IF_ERROR(CheckTokensFill(inputs, path, may_have_documents, format == DataFormat::kFtd));
  FT_ASSIGN_OR_RETURN(TokenSource source, OpenSource(path, inputs, format));
  const bool are_examples = source.ftd != nullptr && source.ftd->kind() == FtdKind::kSequences;
  const SequenceWay way = WayOf(inputs, !source.row.documents.empty(), are_examples);
  FT_RETURN_IF_ERROR(CheckNoTensors(source, way));
  DataInputs filled = inputs;
  DocumentTensors tensors;
  if (way == SequenceWay::kDocuments) {
    const auto given = source.ftd == nullptr ? absl::Span<const FtdFile::Input>() : source.ftd->inputs();
    FT_ASSIGN_OR_RETURN(tensors, DocumentTensors::Make(given, filled, path));
  } else {
    FT_RETURN_IF_ERROR(CheckTokensFill(inputs, path, may_have_documents, false));
  }
  FT_ASSIGN_OR_RETURN(SequenceLayout layout,
                      SequenceLayout::Make(source.row, way, inputs.seq_len, BeyondOf(filled, way), path));
  SequenceFiller filler(filled, source.row);
  return std::make_unique<TokenExamples>(std::move(source), std::move(layout), std::move(filler),
                                         std::move(tensors));
}

}  // namespace ft
