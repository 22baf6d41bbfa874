#include "tools/ftexec/header.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/base/resident_memory.h"
#include "runtime/base/standard_streams.h"
#include "runtime/data/data_text.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/report_text.h"
#include "runtime/plan/stream_use.h"
#include "runtime/plan/target.h"

namespace ft {
namespace {

// A run goes on when nobody reads what it says (fmt::print would throw).
template <typename... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  PrintOut(fmt::format(format, std::forward<Args>(args)...)).IgnoreError();
}

// Of the data that is evaluated on, what is left at its end where rows cannot be filled up.
std::string LeftOutText(const Flags& flags, const Job& job) {
  if (job.eval_data == nullptr || CanFillUpRows(job.plan())) return "";
  const int64_t all = job.eval_data->num_sequences();
  const int64_t left = all % (static_cast<int64_t>(job.plan().batch()) * job.world_size());
  if (left == 0) return "";
  return fmt::format("the last {} of {} {} of {} fill no batch of all ranks and are not evaluated", left, all,
                     ExampleWord(job.plan()), flags.evaluate ? "--data" : "--eval-data");
}

// Of a plan that has code, but none for this device. One that has none was asked to have none.
std::string WalkedText(const proto::Plan& plan, std::string_view target) {
  std::set<std::string> has;
  for (const proto::Cluster& cluster : plan.clusters())
    for (const proto::Cluster::Code& code : cluster.codes()) has.insert(code.target());
  if (has.empty() || has.contains(std::string(target))) return "";
  const std::string walked = "what lies between products is computed op by op, slowly";
  if (target.empty()) return "no code is made for this kind of machine: " + walked;
  return fmt::format("the plan has no code for {} (it has {}): {}; compile with --code={}", target,
                     fmt::join(has, ", "), walked, target);
}

// Of a plan whose target was measured with other ranks, threads or instructions than this run has.
std::string OtherLayoutText(const Job& job, const RankDevice& device) {
  const Target& target = job.plan().target();
  if (!target.has_measured() || target.cuda() == device.is_cpu()) return "";
  Target::Measured here;
  here.set_ranks_on_node(static_cast<uint32_t>(job.environment.local_world_size));
  here.set_threads(static_cast<uint32_t>(job.threads));
  here.set_instruction_set(std::string(device.instruction_set()));
  const std::string all = LayoutText(target.measured()), timed = TimedLayoutText(target.measured());
  if (LayoutText(here) == all && all == timed) return "";
  return fmt::format(
      "{} was measured with {}{}, this run has {}: the predicted time of a step is an estimate",
      target.name(), all, all == timed ? "" : ", its kernels were timed with " + timed, LayoutText(here));
}

// Of the machines that compute.
std::vector<std::string_view> CodeTargets(const proto::Plan& plan, const RankDevice& device) {
  std::vector<std::string_view> targets = {device.code_target()};
  if (!device.is_cpu() && UsesStream(plan, proto::HOST_COMPUTE)) targets.push_back(device.host_code_target());
  return targets;
}

// What sequences of tokens fill, where that is more than tokens and targets.
void SayFillings(const proto::Plan& plan) {
  for (const proto::Input& input : plan.inputs())
    if (IsOfTokens(input.filling()) && input.filling() != proto::Input::TOKENS &&
        input.filling() != proto::Input::TARGETS)
      Say("  {}: {}\n", input.name(), FillingText(input.filling()));
}

double Mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

void PrintPlanLine(const Job& job, int world_size) {
  const proto::Plan& plan = job.plan();
  Say("model {}, {} parameters; strategy {}, {} rank{} (replica {} x shard {}); plan {}\n", plan.model(),
      CountParameters(plan), plan.strategy(), world_size, world_size == 1 ? "" : "s", job.bound.mesh.replica,
      job.bound.mesh.shard, PlanHashText(job.file.hash));
}

void PrintHeader(const Flags& flags, const Job& job, const RankDevice& device,
                 const CommunicationSummary& communication) {
  const proto::Plan& plan = job.plan();
  PrintPlanLine(job, job.world_size());
  Say("arena {} bytes ({:.1f} MiB) per rank", job.bound.arena_bytes(), Mebibytes(job.bound.arena_bytes()));
  if (job.bound.host_arena_bytes() > 0) {
    Say(", host arena {} bytes ({:.1f} MiB)", job.bound.host_arena_bytes(),
        Mebibytes(job.bound.host_arena_bytes()));
  }
  if (device.is_cpu()) {
    Say("; {} thread{} per rank, {}", job.threads, job.threads == 1 ? "" : "s", device.instruction_set());
  }
  Say("; ranks talk by {}", Name(communication.backend));
  if (communication.staging_bytes > 0) Say(", which holds {} bytes more", communication.staging_bytes);
  if (communication.link.has_value()) Say(", over an {}", LinkText(*communication.link));
  const uint64_t micro_steps = std::max(1u, plan.micro_steps());
  Say("\n");
  if (const Dataset* data = job.data != nullptr ? job.data.get() : job.eval_data.get(); data != nullptr) {
    Say("data {}; {} per rank", DataText(*data), BatchText(plan));
    if (flags.trains() && micro_steps > 1) Say(", {} micro-steps", micro_steps);
    if (flags.trains()) Say(", {} per step", micro_steps * plan.batch() * plan.seq_len() * job.world_size());
    Say("\n");
    for (const std::string& line : SourceLines(*data)) Say("  {}\n", line);
    if (data->num_tokens() > 0) SayFillings(plan);
  }
  Say("{}", device.Description(plan));
  const MemoryReport memory = MemoryOf(job);
  Say("arena at its peak: {}\n", ArenaLine(memory.device));
  if (job.bound.host_arena_bytes() > 0) Say("host arena: {}\n", ArenaLine(memory.host));
  PrintMemory(job, device);
}

void PrintDoubts(const Flags& flags, const Job& job, const RankDevice& device) {
  if (flags.kernels == Kernels::kGenerated)
    for (const std::string_view target : CodeTargets(job.plan(), device))
      if (const std::string walked = WalkedText(job.plan(), target); !walked.empty())
        PrintError("ftexec: note: " + walked);
  if (const std::string other = OtherLayoutText(job, device); !other.empty())
    PrintError("ftexec: note: " + other);
  if (const std::string left = LeftOutText(flags, job); !left.empty()) PrintError("ftexec: note: " + left);
  for (const Dataset* data : {job.data.get(), job.eval_data.get()}) {
    const std::string doubt = data == nullptr ? "" : data->doubt();
    if (!doubt.empty()) PrintError("ftexec: note: " + doubt);
  }
}

std::string LinkText(const EmulatedLink& link) {
  return fmt::format("emulated link of {} Gb/s and {} us", link.gigabits_per_s, link.latency_us);
}

void PrintMemory(const Job& job, const RankDevice& device) {
  if (!device.is_cpu()) return Say("{}", MemoryLine(device.Memory(job.bound.arena_bytes())));
  const absl::StatusOr<ResidentMemory> resident = ResidentMemoryOfProcess();
  if (!resident.ok()) return Say("{}\n", std::string(resident.status().message()));
  const uint64_t arenas = job.bound.arena_bytes() + job.bound.host_arena_bytes();
  const auto beyond = [&](uint64_t bytes) { return Mebibytes(bytes - std::min(bytes, arenas)); };
  Say("resident beyond the arenas: {:.1f} MiB, at most {:.1f} MiB so far\n", beyond(resident->now),
      beyond(resident->peak));
}

MemoryReport MemoryOf(const Job& job) { return ReportMemory(job.plan(), job.bound); }

void PrintArena(const Job& job) {
  const MemoryReport memory = MemoryOf(job);
  Say("{}", ArenaTable("Memory that each rank wants", memory.device));
  if (job.bound.host_arena_bytes() > 0)
    Say("\n{}", ArenaTable("Host memory that each rank wants", memory.host));
}

void PrintNote(const std::string& note) { Say("{}\n", note); }

}  // namespace ft
