// Where an executor stands, as a report has it.
#pragma once

#include "runtime/executor/executor_position.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/rank_report.h"

namespace ft {

// `position` is of an executor of `plan`, whose operands `resolver` knows.
void AddPosition(const ExecutorPosition& position, const proto::Plan& plan, const OperandResolver& resolver,
                 RankReport& report);

}  // namespace ft
