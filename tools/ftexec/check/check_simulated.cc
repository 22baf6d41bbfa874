#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "runtime/base/output_check.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/node_layout.h"
#include "runtime/plan/report.h"
#include "tools/ftexec/check/check.h"
#include "tools/ftexec/check/links.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/outputs.h"

namespace ft {
namespace {

Finding JudgeArena(const Job& job) {
  const Target& target = job.plan().target();
  const std::string found = absl::StrCat(BytesText(job.bound.arena_bytes()), " of a rank's device, ",
                                         BytesText(job.bound.host_arena_bytes()), " of its host");
  if (target.memory_bytes() == 0) return Ok("memory", found + "; what the machine has is not known");
  const std::string has = absl::StrCat(found, "; ", target.name(), " has ", BytesText(target.memory_bytes()));
  if (job.bound.arena_bytes() <= target.memory_bytes()) return Ok("memory", has);
  return Warning("memory", has, BytesText(job.bound.arena_bytes()),
                 "more ranks, or a plan that takes less (--remat, --offload)");
}

void AddLinks(const Job& job, std::vector<Finding>& findings) {
  const Target& target = job.plan().target();
  const std::vector<LinkUse> uses = LinkUses(job.plan(), job.bound);
  const std::vector<LinkTry> tries = LinkTries(uses, UINT64_MAX);
  for (size_t first = 0; first < tries.size();) {
    size_t last = first;
    while (last < tries.size() && tries[last].use == tries[first].use) ++last;
    const LinkUse& use = uses[tries[first].use];
    const NodeLayout layout =
        LayoutOnNodes(job.bound.mesh, use.axis, static_cast<int>(target.ranks_per_node()));
    findings.push_back(
        Ok(NameOf(use), fmt::format("{} ranks, not measured: the null device sends nothing", use.ranks),
           absl::StrCat(ReckonedText(target, absl::MakeConstSpan(tries).subspan(first, last - first), layout),
                        " (", target.name(), ")")));
    first = last;
  }
  if (uses.empty()) findings.push_back(Ok("links", "the plan sends nothing between these ranks"));
}

}  // namespace

absl::Status CheckSimulated(const Flags& flags) {
  std::vector<Finding> findings;
  Job job;
  const absl::Status loaded = LoadPlan(flags, flags.world_size, /*local_world_size=*/0, job);
  absl::Status outputs = CheckOutputs(flags);
  if (outputs.ok() && !flags.trace.empty()) outputs = CheckAtomicOutput(flags.trace, 0);
  findings.push_back(loaded.ok() ? Ok("plan", fmt::format("{}, {} parameters, {}; proved for {}",
                                                          job.plan().model(), CountParameters(job.plan()),
                                                          job.plan().strategy(), MeshText(job.bound.mesh)))
                                 : Failure("plan", loaded));
  if (!outputs.ok()) findings.push_back(Failure("outputs", outputs));
  if (loaded.ok()) {
    findings.push_back(JudgeArena(job));
    AddLinks(job, findings);
  }
  findings.push_back(Ok("ranks",
                        "not checked: the null device has none but this process, nor data, disks or "
                        "kernels"));
  FT_RETURN_IF_ERROR(PrintOut(TableOf(findings)));
  return StatusOf(findings);
}

}  // namespace ft
