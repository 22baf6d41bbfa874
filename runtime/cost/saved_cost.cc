#include "runtime/cost/saved_cost.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/cost/kernels.h"
#include "runtime/cost/transfers.h"
#include "runtime/plan/attributes.h"

namespace ft {
namespace {

// The type of 16 bits that the plan computes with, else fp32.
proto::DType ComputeType(const proto::Plan& plan) {
  const proto::Attribute* dtype = FindAttribute(plan.settings(), "param_dtype");
  if (dtype != nullptr && dtype->s() == "bf16") return proto::BF16;
  return dtype != nullptr && dtype->s() == "fp16" ? proto::F16 : proto::F32;
}

// "gelu" of "transformer.h.0.gelu" in layer "transformer.h.0".
std::string WithoutLayer(const proto::Plan::Saved& saved) {
  const std::string prefix = saved.layer() + ".";
  return saved.value().rfind(prefix, 0) == 0 ? saved.value().substr(prefix.size()) : saved.value();
}

}  // namespace

std::vector<SavedReport> ReportSaved(const proto::Plan& plan, const Target& target) {
  const proto::DType dtype = ComputeType(plan);
  std::map<std::pair<std::string, std::string>, SavedReport> groups;  // by choice and value
  for (const proto::Plan::Saved& saved : plan.saved()) {
    const std::string value = WithoutLayer(saved);
    SavedReport& group = groups[{saved.choice(), value}];
    group.value = value;
    group.choice = saved.choice();
    ++group.count;
    group.bytes += saved.bytes();
    group.flops += saved.flops();
    if (saved.choice() == "recompute")
      group.seconds += KernelSeconds(target, saved.flops(), saved.bytes(), dtype);
    if (saved.choice() == "offload") group.seconds += 2 * CopySeconds(target, saved.bytes());
  }
  std::vector<SavedReport> report;
  for (auto& [key, group] : groups) report.push_back(std::move(group));
  std::stable_sort(report.begin(), report.end(), [](const SavedReport& a, const SavedReport& b) {
    return std::tie(a.choice, b.bytes) < std::tie(b.choice, a.bytes);
  });
  return report;
}

}  // namespace ft
