// A file of tokens as examples of a model.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_inputs.h"
#include "runtime/data/sequence_layout.h"

namespace ft {

// How sequences for these inputs are made of a file: a document each where it says that they are examples, or
// where the model is told of padding; packed where it is told of segments; else of the stream.
SequenceWay WayOf(const DataInputs& inputs, bool has_documents, bool are_examples);

// Of all formats but kSafetensors. Errors: those of CheckTokensFill(), OpenTokenFile(), MegatronFile::Open(),
// FtdFile::Open(), SequenceLayout::Make() and DocumentTensors::Make(); InvalidArgument, one line that names
// `path`, for a vocabulary that is larger than the model's, tokens of another tokenizer, and other inputs of
// a file whose documents are no examples.
absl::StatusOr<std::unique_ptr<DataFile>> OpenTokenExamples(const std::string& path, const DataInputs& inputs,
                                                            DataFormat format);

}  // namespace ft
