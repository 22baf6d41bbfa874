#include "tools/ftexec/job.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

int CoresOfProcess() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return CPU_COUNT(&set);
}

int ChooseThreads(const Flags& flags, int cores, int local_ranks) {
  if (flags.threads > 0) return flags.threads;
  int threads = 0;
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  if (wanted != nullptr && absl::SimpleAtoi(wanted, &threads) && threads > 0) return threads;
  return std::max(1, cores / std::max(1, local_ranks));
}

// A run of hours must not fail at its end because of a folder that is not there.
absl::Status CheckFolder(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  const size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, std::max<size_t>(slash, 1));
  return access(folder.c_str(), W_OK) == 0 ? absl::OkStatus() : PosixError(errno, "write into", folder);
}

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::weakly_canonical(a, ignored);
  if (std::filesystem::is_character_file(path, ignored))
    return false;  // /dev/null may be given several times
  return !a.empty() && !b.empty() && path == std::filesystem::weakly_canonical(b, ignored);
}

// What a run writes must not be what it reads, nor be written twice. Only --save-weights may replace --init:
// that is read whole before.
absl::Status CheckOutputs(const Flags& flags) {
  struct File {
    const char* name;
    const std::string& path;
  };
  const File data = {"--data", flags.data}, plan = {"the plan", flags.plan}, init = {"--init", flags.init};
  const File weights = {"--save-weights", flags.save_weights}, metrics = {"--metrics", flags.metrics};
  const File trace = {"--trace", flags.trace};
  const std::pair<File, std::vector<File>> outputs[] = {{weights, {plan, data}},
                                                        {metrics, {plan, data, init, weights}},
                                                        {trace, {plan, data, init, weights, metrics}}};
  for (const auto& [output, others] : outputs) {
    FT_RETURN_IF_ERROR(CheckFolder(output.path));
    for (const File& other : others) {
      if (!IsSameFile(output.path, other.path)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          output.name, " and ", other.name, " are the same file, '", output.path, "'; give another name"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadPlan(const std::string& path, int world_size, Job& job) {
  FT_ASSIGN_OR_RETURN(job.file, ReadPlan(path));
  if (absl::Status status = VerifyPlan(job.plan()); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
  }
  FT_ASSIGN_OR_RETURN(const Mesh mesh, MeshFor(job.plan(), world_size));
  FT_ASSIGN_OR_RETURN(job.bound, BindPlan(job.plan(), mesh));
  return absl::OkStatus();
}

absl::StatusOr<Job> PrepareJob(const Flags& flags, const LaunchEnvironment& environment) {
  Job job;
  job.environment = environment;
  FT_RETURN_IF_ERROR(LoadPlan(flags.plan, environment.world_size, job));
  FT_ASSIGN_OR_RETURN(job.data, OpenDataset(flags.data, static_cast<int64_t>(job.plan().vocab_size()),
                                            static_cast<int64_t>(job.plan().seq_len()), flags.data_format));
  if (environment.rank == 0) FT_RETURN_IF_ERROR(CheckOutputs(flags));
  const int64_t per_step = static_cast<int64_t>(job.plan().batch()) * environment.world_size;
  job.steps = flags.steps.value_or((job.data->num_sequences() + per_step - 1) / per_step);
  const int cores = CoresOfProcess(), local_ranks = environment.local_world_size;
  job.threads = ChooseThreads(flags, cores, local_ranks);
  job.may_spin = job.threads * local_ranks < cores;
  return job;
}

std::string Fingerprint(const Flags& flags, const Job& job) {
  return absl::StrFormat("plan=%s seed=%d steps=%d lr=%.17g shuffle=%d init=%d save=%d tokens=%d",
                         PlanHashText(job.file.hash), flags.seed, job.steps, flags.lr, flags.shuffle ? 1 : 0,
                         flags.init.empty() ? 0 : 1, flags.save_weights.empty() ? 0 : 1,
                         job.data->num_tokens());
}

std::string FingerprintLabel(const Flags& flags, const Job& job) {
  return absl::StrFormat("%s (hash %s), --steps=%d --seed=%d --lr=%g --shuffle=%s, %d tokens of data%s%s",
                         flags.plan, PlanHashText(job.file.hash), job.steps, flags.seed, flags.lr,
                         flags.shuffle ? "on" : "off", job.data->num_tokens(),
                         flags.init.empty() ? "" : ", --init",
                         flags.save_weights.empty() ? "" : ", --save-weights");
}

}  // namespace ft
