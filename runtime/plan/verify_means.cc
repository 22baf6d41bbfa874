// That gradients summed over ranks become means: collectives divide nothing. Either backward begins with 1 /
// the ranks, in the last micro-step as in those before it, or what reads the sums multiplies by it: the norm
// and the update, and then backward reads it nowhere. How kernels use it is theirs, as with all they compute.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_parts.h"
#include "runtime/plan/verify_place.h"

namespace ft {
namespace {

constexpr absl::string_view kPort = "inverse_ranks";

bool SumsUnits(const proto::Plan& plan, const proto::Instruction& instruction) {
  return instruction.opcode() == proto::REDUCE_SCATTER ||
         (instruction.opcode() == proto::ALL_REDUCE &&
          IsOfUnit(plan.buffers(instruction.in(0).buffer_plus_one() - 1).size()));
}

// How a program uses 1 / the ranks.
class Means {
 public:
  Means(const proto::Plan& plan, int number) : plan_(plan), number_(number), program_(plan.programs(number)) {
    const auto begin = program_.inputs().begin(), end = program_.inputs().end();
    const auto port = std::find_if(begin, end, [](const auto& input) { return input.name() == kPort; });
    if (port != end) port_ = &*port;
  }

  bool sums() const {
    return std::any_of(program_.instructions().begin(), program_.instructions().end(),
                       [&](const auto& i) { return SumsUnits(plan_, i); });
  }
  bool has_port() const { return port_ != nullptr; }
  absl::Status Invalid(absl::string_view what) const {
    if (port_ != nullptr) return Place{.plan = plan_, .program = number_, .port = port_}.Invalid(what);
    return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", program_.name(), ": ", what));
  }

  absl::Status VerifyPort() const {
    if (port_ == nullptr) return absl::OkStatus();
    const proto::Operand& operand = port_->operand();
    const bool is_f32 = operand.dtype() == proto::F32 && !operand.whole() && operand.shape_size() == 0;
    return is_f32 ? absl::OkStatus() : Invalid("it is no f32");
  }
  // Whether it is read by something else than the optimizer.
  bool BeginsWithMean() const {
    return std::any_of(program_.instructions().begin(), program_.instructions().end(), [&](const auto& i) {
      return Reads(i) && i.phase() != "optimizer" && i.kernel() != "sum_squares" &&
             i.kernel() != "update_scalars";
    });
  }
  // Whether some instruction of such a kernel reads it, and whether one does not that should.
  bool Some(absl::string_view kernel) const {
    return std::any_of(program_.instructions().begin(), program_.instructions().end(),
                       [&](const auto& i) { return i.kernel() == kernel && Reads(i); });
  }
  bool OneDoesNot(absl::string_view kernel) const {
    return std::any_of(program_.instructions().begin(), program_.instructions().end(),
                       [&](const auto& i) { return i.kernel() == kernel && !Reads(i) && Names(i); });
  }

 private:
  // Whether no formulas say that the instruction does without.
  static bool Names(const proto::Instruction& instruction) {
    const auto& attributes = instruction.attributes();
    return std::all_of(attributes.begin(), attributes.end(), [](const proto::Attribute& attribute) {
      return attribute.name() != "formulas" || absl::StrContains(attribute.s(), kPort);
    });
  }
  bool Reads(const proto::Instruction& instruction) const {
    return port_ != nullptr &&
           std::any_of(instruction.in().begin(), instruction.in().end(), [&](const proto::Operand& in) {
             return in.buffer_plus_one() == port_->operand().buffer_plus_one();
           });
  }

  const proto::Plan& plan_;
  const int number_;
  const proto::Program& program_;
  const proto::Port* port_ = nullptr;
};

absl::Status VerifyStep(const Means& step) {
  if (!step.has_port())
    return step.Invalid(absl::StrCat("it sums gradients over ranks, but has no input '", kPort, "'"));
  const bool in_norm = step.Some("sum_squares"), in_update = step.Some("update_scalars");
  if (in_norm != in_update ||
      (in_norm && (step.OneDoesNot("sum_squares") || step.OneDoesNot("update_scalars"))))
    return step.Invalid("some of what reads gradients makes means of them, some takes them for means");
  if (step.BeginsWithMean() && in_update)
    return step.Invalid("backward begins with it, and the update makes means once more");
  if (!step.BeginsWithMean() && !in_update) return step.Invalid("nothing makes a mean of gradients with it");
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyMeans(const proto::Plan& plan) {
  bool sums = false, begins_with_mean = false;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const Means means(plan, p);
    FT_RETURN_IF_ERROR(means.VerifyPort());
    if (plan.programs(p).name() != "train_step" || !means.sums()) continue;
    FT_RETURN_IF_ERROR(VerifyStep(means));
    sums = true;
    begins_with_mean = means.BeginsWithMean();
  }
  for (int p = 0; sums && p < plan.programs_size(); ++p) {
    if (plan.programs(p).name() != "train_micro") continue;
    const Means micro(plan, p);
    if (micro.BeginsWithMean() != begins_with_mean)
      return micro.Invalid("its backward and that of train_step do not begin alike");
  }
  return absl::OkStatus();
}

}  // namespace ft
