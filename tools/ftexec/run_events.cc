#include "tools/ftexec/run_events.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/data_text.h"
#include "runtime/metrics/markdown.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/report_text.h"
#include "tools/ftexec/header.h"

namespace ft {
namespace {

using SettingRows = std::vector<std::pair<std::string, std::string>>;

// As a shell would take it.
std::string ShellWord(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("-_./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain ? std::string(word)
               : fmt::format("'{}'", absl::StrReplaceAll(std::string(word), {{"'", "'\\''"}}));
}

std::string CommandLineText(const Flags& flags) {
  std::string line = "ftexec";
  for (const std::string& argument : flags.arguments) line += " " + ShellWord(argument);
  return line;
}

std::string ScheduleText(const LrSchedule& lr) {
  std::string text = fmt::format("{}, {}", lr.peak, Name(lr.kind));
  if (lr.kind != LrSchedule::Kind::kConstant)
    text += fmt::format(" to {} at step {}", lr.min_lr, lr.total_steps);
  if (lr.warmup_steps > 0) {
    text += fmt::format(", from {} in {} steps{}", lr.warmup_min_lr, lr.warmup_steps,
                        lr.warmup == LrSchedule::Warmup::kLog ? " by their logarithm" : "");
  }
  return text + (lr.convention == LrSchedule::Convention::kDeepSpeed ? ", as DeepSpeed counts" : "");
}

void AddModelRows(const Flags& flags, const Job& job, SettingRows& rows) {
  const proto::Plan& plan = job.plan();
  rows.emplace_back("model", fmt::format("{}, {} parameters", plan.model(), Grouped(CountParameters(plan))));
  rows.emplace_back("plan", fmt::format("{}, hash {}", flags.plan, PlanHashText(job.file.hash)));
  rows.emplace_back("strategy", plan.strategy());
  rows.emplace_back("ranks", fmt::format("{}, {}", job.world_size(), MeshText(job.bound.mesh)));
  const uint64_t micro_steps = std::max(1u, plan.micro_steps());
  rows.emplace_back("batch", fmt::format("{} per rank, {} micro-step{}, {} {} per step", BatchText(plan),
                                         micro_steps, micro_steps == 1 ? "" : "s",
                                         micro_steps * plan.batch() * plan.seq_len() * job.world_size(),
                                         CountedWord(plan)));
}

void AddTrainingRows(const Flags& flags, const Job& job, int64_t first_step, SettingRows& rows) {
  rows.emplace_back("steps", fmt::format("{}, from step {}", job.steps, first_step));
  rows.emplace_back("seed", std::to_string(job.seed));
  rows.emplace_back("learning rate", ScheduleText(job.lr));
  rows.emplace_back("bad steps in a row that end the run", std::to_string(job.max_bad_steps));
  if (!flags.init.empty()) rows.emplace_back("weights to start from", flags.init);
  rows.emplace_back("data", DataText(*job.data));
  rows.emplace_back("shuffled", job.shuffle ? "yes" : "no");
  if (job.eval_data == nullptr) return;
  rows.emplace_back("evaluation data", DataText(*job.eval_data));
  rows.emplace_back("evaluated", flags.eval_every > 0
                                     ? fmt::format("after every {} steps and the last", flags.eval_every)
                                     : "after the last step");
}

void AddMachineRows(const Job& job, const RankDevice& device, CollectiveBackend backend, SettingRows& rows) {
  if (device.is_cpu()) {
    rows.emplace_back("device",
                      fmt::format("cpu, {} threads per rank, {}", job.threads, device.instruction_set()));
  } else {
    const std::string lines(absl::StripTrailingAsciiWhitespace(device.Description(job.plan())));
    rows.emplace_back("device", absl::StrReplaceAll(lines, {{"\n", "; "}}));
  }
  rows.emplace_back("ranks talk by", std::string(Name(backend)));
  rows.emplace_back("attempt", std::to_string(job.environment.restart_count));
}

// The tables of `ftc explain`.
std::string MemoryTables(const Job& job) {
  const MemoryReport memory = MemoryOf(job);
  std::string text = ArenaTable("Memory of each rank", memory.device);
  if (memory.host.arena_bytes > 0) text += "\n" + ArenaTable("Host memory of each rank", memory.host);
  return MarkdownBlock(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingEvents>> OpenTrainingEvents(
    const Flags& flags, const Job& job, const RankDevice& device, CollectiveBackend backend,
    int64_t first_step, std::function<void(const std::string& line)> warn) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<EventFile> file,
                      EventFile::Open(flags.log_dir, {.first_step = first_step}));
  auto events = std::make_unique<TrainingEvents>(std::move(file), std::move(warn));
  events->WriteText(first_step, "run/settings", SettingsText(flags, job, device, backend, first_step));
  events->WriteText(first_step, "run/memory", MemoryTables(job));
  return events;
}

std::string SettingsText(const Flags& flags, const Job& job, const RankDevice& device,
                         CollectiveBackend backend, int64_t first_step) {
  SettingRows rows = {{"command line", CommandLineText(flags)}};
  AddModelRows(flags, job, rows);
  AddTrainingRows(flags, job, first_step, rows);
  AddMachineRows(job, device, backend, rows);
  return MarkdownTable("setting", "value", rows);
}

}  // namespace ft
