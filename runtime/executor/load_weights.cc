#include "runtime/executor/load_weights.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/executor/master_parameters.h"

namespace ft {
namespace {

std::vector<WantedTensor> Wanted(const proto::Plan& plan) {
  std::vector<WantedTensor> wanted;
  for (const proto::Parameter& parameter : plan.parameters()) {
    WantedTensor& tensor = wanted.emplace_back();
    tensor.name = parameter.name();
    tensor.shape.assign(parameter.shape().begin(), parameter.shape().end());
    tensor.aliases.assign(parameter.aliases().begin(), parameter.aliases().end());
    for (std::string& alias : HuggingFaceAliases(parameter.name()))
      tensor.aliases.push_back(std::move(alias));
  }
  return wanted;
}

}  // namespace

absl::StatusOr<std::string> LoadWeights(const proto::Plan& plan, const Executor& executor,
                                        const std::string& path) {
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsReader> reader, SafetensorsReader::Open(path));
  FT_ASSIGN_OR_RETURN(const WeightMatch match, MatchWeights(*reader, Wanted(plan)));
  for (int p = 0; p < plan.parameters_size(); ++p) {
    const proto::Parameter& parameter = plan.parameters(p);
    FT_ASSIGN_OR_RETURN(const MasterParameters master,
                        FindMasterParameters(plan, executor.operands(), parameter.unit()));
    const uint64_t end_of_parameter =
        parameter.offset() + static_cast<uint64_t>(match.entries[p]->num_elements);
    const uint64_t begin = std::max(parameter.offset(), master.begin);
    const uint64_t end = std::min(end_of_parameter, master.begin + master.elements);
    if (begin >= end) continue;
    FT_RETURN_IF_ERROR(reader->ReadAsF32(*match.entries[p], static_cast<int64_t>(begin - parameter.offset()),
                                         static_cast<int64_t>(end - begin),
                                         master.data + (begin - master.begin)));
  }
  return match.note;
}

}  // namespace ft
