#include "runtime/cost/kernel_key.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/content_hash.h"
#include "runtime/plan/operand_extent.h"
#include "runtime/plan/size_expr.h"

namespace ft {
namespace {

// Parts of a key, each with its length, so that no two lists of parts are the same bytes.
class KeyHash {
 public:
  void Add(std::string_view text) {
    Add(text.size());
    hash_.Update(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
  void Add(uint64_t number) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(number >> (8 * i));
    hash_.Update(bytes);
  }
  void Add(const google::protobuf::MessageLite& message) { Add(message.SerializeAsString()); }
  uint64_t Digest() const { return hash_.Digest(); }

 private:
  ContentHash hash_;
};

// Attributes that number the random streams of an instruction.
bool NumbersDraws(const proto::Attribute& attribute) {
  return absl::StartsWith(attribute.name(), "draw") || attribute.name() == "stream" ||
         attribute.name() == "streams";
}

void AddOperand(const proto::Plan& plan, const proto::Operand& operand, KeyHash& key) {
  if (operand.buffer_plus_one() == 0) return key.Add(uint64_t{0});
  key.Add(uint64_t{1});
  key.Add(static_cast<uint64_t>(operand.dtype()));
  const proto::SizeExpr extent = ExtentOf(plan, operand);
  key.Add(static_cast<uint64_t>(extent.kind()));
  key.Add(extent.value());
  if (IsOfUnit(extent)) key.Add(plan.units(static_cast<int>(extent.unit())).elements());
  for (const uint64_t dim : operand.shape()) key.Add(dim);
}

// All but its code, which follows from it.
void AddBody(const proto::Cluster& cluster, KeyHash& key) {
  for (const uint64_t number : {cluster.rows(), cluster.columns(), cluster.last_columns()}) key.Add(number);
  for (const auto& input : cluster.inputs()) key.Add(input);
  for (const auto& read : cluster.reads()) key.Add(read);
  for (const auto& op : cluster.ops()) key.Add(op);
  for (const auto& output : cluster.outputs()) key.Add(output);
  for (const auto& result : cluster.results()) key.Add(result);
}

}  // namespace

uint64_t KernelKey(const proto::Plan& plan, const proto::Instruction& kernel) {
  KeyHash key;
  key.Add(kernel.kernel());
  key.Add(uint64_t{kernel.stream() == proto::HOST_COMPUTE});
  for (const proto::Attribute& attribute : kernel.attributes())
    if (!NumbersDraws(attribute)) key.Add(attribute);
  key.Add(static_cast<uint64_t>(kernel.in_size()));
  for (const proto::Operand& operand : kernel.in()) AddOperand(plan, operand, key);
  for (const proto::Operand& operand : kernel.out()) AddOperand(plan, operand, key);
  // A schedule that is still being made has no bodies yet.
  const uint32_t cluster = kernel.cluster_plus_one();
  if (cluster != 0 && cluster <= static_cast<uint32_t>(plan.clusters_size()))
    AddBody(plan.clusters(static_cast<int>(cluster) - 1), key);
  return key.Digest();
}

const Target::TimedKernel* FindTimed(const Target& target, const proto::Plan& plan,
                                     const proto::Instruction& kernel) {
  if (target.timed_kernels().empty()) return nullptr;
  const uint64_t key = KernelKey(plan, kernel);
  const auto found = std::lower_bound(
      target.timed_kernels().begin(), target.timed_kernels().end(), key,
      [](const Target::TimedKernel& timed, uint64_t wanted) { return timed.key() < wanted; });
  return found == target.timed_kernels().end() || found->key() != key ? nullptr : &*found;
}

}  // namespace ft
