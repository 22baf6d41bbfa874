// What `ftc explain` knows about a plan, and the forms in which it says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cost/saved_cost.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/report.h"
#include "runtime/plan/target.h"
#include "tools/ftc/step_cost.h"
#include "tools/ftc/training_span.h"

namespace ftc {

// What a rank's communicators hold outside of the arena, by the way ranks talk; 0 for a single rank.
struct CommunicatorBytes {
  uint64_t shm = 0;
  uint64_t gloo = 0;
};

struct Explained {
  std::string name;  // the plan's file, or the strategy that a model was compiled with
  ft::proto::Plan plan;
  ft::BoundPlan bound;
  ft::PlanReport report;
  ft::Target target;
  ft::SimulatedProgram step;  // on the target; no instructions
  StepCost cost;
  CommunicatorBytes communicators;
  // Host memory of a rank, of the one with the most, for saving checkpoints beside training: what it writes.
  // Nothing for a plan that does not say in which type it keeps its state.
  struct Snapshot {
    uint64_t bytes = 0;  // of a checkpoint of type full or sharded
    uint64_t local = 0;  // of type local
  };
  std::optional<Snapshot> snapshot;
  std::vector<ft::SavedReport> saved;  // what decisions about activations buy on the target
  std::optional<TrainingSpan> span;    // of so many tokens as were asked about
};

// `peak`: how many of the buffers live at the peak are listed.
std::string ExplainText(const Explained& explained, int peak);
std::string ExplainJson(const Explained& explained, int peak);

// When each instruction of a step would run on the target, and why each transfer stands where it stands.
std::string ScheduleText(const Explained& explained);
std::string ScheduleJson(const Explained& explained);

// A plan that cannot run on the ranks in question.
struct LeftOut {
  std::string name, why;
};

// Several plans side by side, and those for which there is no column.
std::string CompareText(const std::vector<Explained>& plans, const std::vector<LeftOut>& left_out);
std::string CompareJson(const std::vector<Explained>& plans, const std::vector<LeftOut>& left_out, int peak);

}  // namespace ftc
