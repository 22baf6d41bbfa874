// The weights that a run starts from, checked against its plan before any memory is asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/checkpoint/safetensors_reader.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

struct InitialWeights {
  std::unique_ptr<SafetensorsReader> reader;
  // Of the plan's parameters: the tensors that have one, behind one another; none where a parameter starts as
  // the plan says.
  std::vector<std::vector<const SafetensorsReader::Entry*>> entries;
  std::vector<std::string> notes;  // lines for the user
};

// Opens the safetensors file or folder `path`, finds the plan's parameters in it, and compares the model's
// facts with the config.json of the folder, or of the file's folder. A file may lie beside a config.json of
// another program: without a model_type that is not compared. Tensors that match a glob of `allow_unused` may
// be left over. Adapters (Plan.lora) are there all or not at all. InvalidArgument: everything that shows
// another model than the plan's, in one message; the errors of SafetensorsReader::Open, CompareConfig and
// FactsOf.
absl::StatusOr<InitialWeights> OpenInitialWeights(const proto::Plan& plan, const std::string& path,
                                                  absl::Span<const std::string> allow_unused = {});

// The adapters of a plan, from a folder of PEFT, or its file of weights. Modules that the plan trains whole
// are among them. InvalidArgument: a plan without adapters, other ones, or others than the plan's.
absl::StatusOr<InitialWeights> OpenInitialAdapters(const proto::Plan& plan, const std::string& path);

// The parameters that none of the sources has, and that start as the plan says.
std::vector<std::string> StartingAnew(const proto::Plan& plan, absl::Span<const InitialWeights> sources);

}  // namespace ft
