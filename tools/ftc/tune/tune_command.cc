#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <tuple>

#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/output_check.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/commands.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/config/settings.h"
#include "tools/ftc/output_and_inputs.h"
#include "tools/ftc/tune/tuning.h"

namespace ftc {
namespace {

// A line that updates in place on a terminal; nothing elsewhere.
class Bar {
 public:
  ~Bar() { Clear(); }

  void Show(double done, const std::string& what) {
    if (!on_terminal_) return;
    const std::lock_guard lock(mutex_);
    const int part = static_cast<int>(std::lround(100 * done));
    if (part == shown_ && what == what_) return;
    shown_ = part;
    what_ = what;
    if (done >= 1) return Clear();
    is_shown_ = true;
    std::fputs(fmt::format("\r{:3}%  {:<30}", part, what).c_str(), stderr);
  }

 private:
  void Clear() {
    if (is_shown_) std::fputs(fmt::format("\r{:36}\r", "").c_str(), stderr);
    is_shown_ = false;
  }

  const bool on_terminal_ = isatty(STDERR_FILENO) != 0;
  std::mutex mutex_;
  bool is_shown_ = false;
  int shown_ = -1;
  std::string what_;
};

// The settings with a strategy, which a search does without.
struct Configured {
  Effective effective;
  bool has_strategy = false;
};

absl::StatusOr<std::variant<Configured, Refusal>> ConfigureAny(const TuneCommand& command) {
  std::vector<Given> flags = command.settings.flags;
  FT_ASSIGN_OR_RETURN(auto given, Configure(command.settings.config, flags));
  if (auto* effective = std::get_if<Effective>(&given)) {
    const bool has_strategy = effective->configuration.options.strategy != kAutoStrategy;
    return Configured{std::move(*effective), has_strategy};
  }
  const auto is_strategy = [](const Given& flag) { return flag.setting == SettingIndex("strategy"); };
  if (std::any_of(flags.begin(), flags.end(), is_strategy)) return std::get<Refusal>(std::move(given));
  // It may be that nothing but a strategy is missing.
  FT_RETURN_IF_ERROR(SetFlag("strategy", kAutoStrategy, flags));
  FT_ASSIGN_OR_RETURN(auto completed, Configure(command.settings.config, flags));
  if (auto* effective = std::get_if<Effective>(&completed)) return Configured{std::move(*effective), false};
  return std::get<Refusal>(std::move(completed));
}

// As the user has them, with as many micro-steps as the global batch wants of its batch, where that is a
// whole number.
ft::compiler::CompileOptions OwnOptions(const Tuning& tuning) {
  ft::compiler::CompileOptions options = tuning.request.base;
  const int64_t batch = options.batch != 0 ? options.batch : tuning.space.modelBatch;
  const int64_t of_rank = tuning.request.globalBatch / options.worldSize;
  if (of_rank > 0 && of_rank % batch == 0) options.microSteps = of_rank / batch;
  return options;
}

ft::compiler::TuneRequest RequestFor(const TuneCommand& command, const Configured& configured,
                                     int world_size) {
  ft::compiler::TuneRequest request =
      TuneRequestOf(command.settings.model, configured.effective, Decided::kByFlags, command.memory_bytes);
  request.hostBytes = command.host_bytes;
  request.exhaustive = command.exhaustive;
  if (world_size == 0) return request;
  request.base.worldSize = world_size;
  request.base.mesh.reset();  // of the file's ranks
  return request;
}

// Fills in what follows from the request.
absl::Status Tune(const TuneCommand& command, bool with_own, Tuning& tuning) {
  FT_ASSIGN_OR_RETURN(tuning.space, ft::compiler::tuneSpaceOf(tuning.request));
  if (command.space) return absl::OkStatus();
  Bar bar;
  FT_ASSIGN_OR_RETURN(tuning.result, ft::compiler::searchTuneSpace(tuning.request, tuning.space,
                                                                   [&](double done, const std::string& what) {
                                                                     bar.Show(done, what);
                                                                   }));
  if (!with_own) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(tuning.own,
                      ft::compiler::TuneTrials(tuning.request, tuning.space).measure(OwnOptions(tuning)));
  return absl::OkStatus();
}

// One search for each number of ranks. Errors: InvalidArgument when no number has a table, for the reason of
// the first.
absl::StatusOr<std::vector<Tuning>> TuneSizes(const TuneCommand& command, const Configured& configured) {
  std::vector<int> sizes = command.world_sizes;
  if (sizes.empty()) sizes.push_back(0);
  const bool shows_own = configured.has_strategy && (command.json || sizes.size() == 1);
  std::vector<Tuning> tunings;
  for (const int size : sizes) {
    Tuning& tuning = tunings.emplace_back();
    tuning.request = RequestFor(command, configured, size);
    const absl::Status status = Tune(command, shows_own, tuning);
    if (!status.ok() && !absl::IsInvalidArgument(status)) return status;
    tuning.refused = std::string(status.message());
  }
  const auto is_refused = [](const Tuning& tuning) { return !tuning.refused.empty(); };
  if (std::all_of(tunings.begin(), tunings.end(), is_refused))
    return absl::InvalidArgumentError(tunings[0].refused);
  return tunings;
}

absl::Status WriteConfig(const TuneCommand& command, const Tuning& tuning) {
  if (tuning.result.best.empty()) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(const std::vector<Given> flags,
                      WithSettings(tuning.space, tuning.result.best[0].point, command.settings.flags));
  FT_ASSIGN_OR_RETURN(const auto configured, Configure(command.settings.config, flags));
  if (const auto* refusal = std::get_if<Refusal>(&configured)) return absl::InternalError(refusal->message);
  return ft::WriteFileAtomically(command.settings.output, PrintConfig(std::get<Effective>(configured)));
}

absl::Status TuneAll(const TuneCommand& command, const Configured& configured) {
  if (!command.settings.output.empty()) FT_RETURN_IF_ERROR(ft::CheckAtomicOutput(command.settings.output, 0));
  FT_ASSIGN_OR_RETURN(const std::vector<Tuning> tunings, TuneSizes(command, configured));
  if (command.space) return ft::PrintOut(SpaceText(tunings[0]));
  FT_RETURN_IF_ERROR(ft::PrintOut(command.json ? TuneJson(command, tunings) : TuneText(command, tunings)));
  if (tunings.size() == 1 && tunings[0].result.best.empty())
    return absl::InvalidArgumentError(NothingFits(tunings[0].space, tunings[0].result));
  return command.settings.output.empty() ? absl::OkStatus() : WriteConfig(command, tunings[0]);
}

}  // namespace

int Run(const TuneCommand& command) {
  const auto& [model, config] = std::tie(command.settings.model, command.settings.config);
  if (const std::string mistake = OverwrittenInput(command.settings.output, {model, config});
      !mistake.empty())
    return FailUsage(mistake);
  const auto configured = ConfigureAny(command);
  if (!configured.ok()) {
    if (!absl::IsInvalidArgument(configured.status())) return Fail(configured.status());
    ft::PrintError(std::string(configured.status().message()));
    return ft::ExitStatus(configured.status());
  }
  if (const auto* refusal = std::get_if<Refusal>(&*configured))
    return refusal->usage ? FailUsage(refusal->message) : Fail(absl::InvalidArgumentError(refusal->message));
  const Configured& settings = std::get<Configured>(*configured);
  for (const std::string& remark : settings.effective.remarks) ft::PrintError("ftc: " + remark);
  const absl::Status status = TuneAll(command, settings);
  if (status.ok() || !HasPlace(status)) return StatusOf(status);
  ft::PrintError(std::string(status.message()));
  return ft::ExitStatus(status);
}

}  // namespace ftc
