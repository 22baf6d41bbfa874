#include "runtime/plan/verify_plan.h"

#include "runtime/base/status_macros.h"
#include "runtime/plan/verify_parts.h"

namespace ft {

absl::Status VerifyPlan(const proto::Plan& plan) {
  FT_RETURN_IF_ERROR(VerifyTables(plan));
  FT_RETURN_IF_ERROR(VerifyInstructions(plan));
  FT_RETURN_IF_ERROR(VerifyCommunication(plan));
  FT_RETURN_IF_ERROR(VerifyMeans(plan));
  FT_RETURN_IF_ERROR(VerifyOrder(plan));
  FT_RETURN_IF_ERROR(VerifyContents(plan));
  FT_RETURN_IF_ERROR(VerifyLora(plan));
  return VerifyInputs(plan);
}

}  // namespace ft
