// Low-rank adapters as PEFT has them on disk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/adapter_parameters.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

inline constexpr char kPeftWeightsFile[] = "adapter_model.safetensors";
inline constexpr char kPeftConfigFile[] = "adapter_config.json";

// What PEFT calls the tensor of a parameter in its files: by the module's name in memory, which is not that
// in files for all types of models. The type is that of the facts; where there are none, names are as they
// are.
std::string PeftName(const google::protobuf::RepeatedPtrField<proto::Attribute>& facts,
                     std::string_view parameter);

// adapter_config.json. `config` is the config.json of the model beside which they are, whose class says the
// task; empty where it is not known. `base`: where the model lies, as PEFT is to look for it; empty: nowhere.
// Modules are named as in memory, by their last parts where these mean the same among `parameters`, all of
// the model's.
std::string PeftConfigJson(const proto::Lora& lora, std::string_view config, std::string_view base,
                           const std::vector<std::string>& parameters);

// Compares an adapter_config.json with the adapters of a plan, in what changes a result. InvalidArgument: all
// differences, or a file that is none; the system's errors.
absl::Status CheckPeftConfig(const std::string& path, const proto::Lora& lora);

}  // namespace ft
