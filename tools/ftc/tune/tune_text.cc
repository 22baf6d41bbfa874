#include <algorithm>
#include <iterator>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/tune/tune_figures.h"
#include "tools/ftc/tune/tuning.h"

namespace ftc {
namespace {

using ft::compiler::TunePoint;
using ft::compiler::TuneRow;
using ft::compiler::TuneTrial;

// Exposed communication that a reader would call visible.
constexpr double kShows = 0.05;

// The settings that differ from the usual ones, in few words.
std::string Words(const Tuning& tuning, const TunePoint& point) {
  const ft::compiler::TuneSpace& space = tuning.space;
  const auto& layout = space.layouts[point.layout];
  const auto& split = space.splits[point.split];
  const auto& wrap = space.wraps[point.wrap];
  const auto& schedule = space.schedules[point.schedule];
  std::string text = layout.strategy;
  if (layout.mesh.replica > 1 && layout.mesh.shard > 1)
    text += fmt::format(" {}x{}", layout.mesh.replica, layout.mesh.shard);
  text += fmt::format(", batch {} x {}", split.batch, split.microSteps);
  const auto add = [&](bool differs, const std::string& words) { text += differs ? ", " + words : ""; };
  add(space.remats[point.remat] != "none", "remat " + space.remats[point.remat]);
  add(space.offloads[point.offload] != "none", "offload " + space.offloads[point.offload]);
  add(wrap.wrap != "transformer", "wrap " + wrap.wrap);
  add(wrap.persistenceThreshold > 0, fmt::format("persistence {}", wrap.persistenceThreshold));
  const bool overlaps = layout.mesh.world_size() > 1 || space.offloads[point.offload] != "none";
  add(overlaps, "prefetch " + schedule.prefetch);
  add(overlaps && schedule.limitAllGathers != 2, fmt::format("limit {}", schedule.limitAllGathers));
  add(overlaps && schedule.bucketMb > 0, fmt::format("buckets {:g} MiB", schedule.bucketMb));
  return text;
}

void AddRow(const std::string& name, const Tuning& tuning, const TuneTrial& trial, const std::string& words,
            std::string& text) {
  const Figures figures = FiguresOf(tuning, trial);
  fmt::format_to(std::back_inserter(text), "  {:>5}  {:>10.2f}  {:>11.0f}  {:>5}  {:>9}  {:>8.2f}  {}\n",
                 name, trial.seconds * 1e3, figures.tokens_per_s,
                 figures.mfu > 0 ? fmt::format("{:.1f}%", 100 * figures.mfu) : "-",
                 ft::ShortBytes(trial.deviceBytes), trial.exposedSeconds * 1e3,
                 trial.hostBytes == 0
                     ? words
                     : fmt::format("{} ({} of the host)", words, ft::ShortBytes(trial.hostBytes)));
}

std::string Head(const Tuning& tuning) {
  const auto& request = tuning.request;
  const auto& split = tuning.space.splits[0];
  const int ranks = request.base.worldSize;
  std::string text =
      fmt::format("{} on {}: {} rank{}, {} sequences a step", request.model, request.base.target.name(),
                  ranks, ranks == 1 ? "" : "s", split.batch * split.microSteps * ranks);
  text += request.memoryBytes == 0
              ? ", memory not limited"
              : fmt::format(", within {} of a rank's device", ft::ShortBytes(request.memoryBytes));
  if (request.hostBytes != 0) text += fmt::format(" and {} of its host", ft::ShortBytes(request.hostBytes));
  return text + "\n";
}

std::string Counts(const Tuning& tuning) {
  const auto& space = tuning.space;
  return fmt::format(
      "table of {} points: {} layouts x {} splits of the batch x {} recomputations x {} offloads x {} wraps "
      "x {} "
      "schedules; {} compilations\n",
      ft::Grouped(space.size()), space.layouts.size(), space.splits.size(), space.remats.size(),
      space.offloads.size(), space.wraps.size(), space.schedules.size(), tuning.result.compilations);
}

void AddOwn(const Tuning& tuning, std::string& text) {
  if (!tuning.own) return;
  if (!tuning.own->refused.empty()) {
    text += fmt::format("  yours  cannot be compiled: {}\n", tuning.own->refused);
    return;
  }
  const bool fits = ft::compiler::fits(*tuning.own, tuning.request);
  std::string words = "as configured";
  // Of another number of sequences a step than the rows below it.
  if (!tuning.result.best.empty() && tuning.own->tokens != tuning.result.best[0].trial.tokens)
    words += fmt::format(", {:.0f} tokens of a rank a step, not {:.0f}", tuning.own->tokens,
                         tuning.result.best[0].trial.tokens);
  if (!fits) words += ": does not fit";
  AddRow("yours", tuning, *tuning.own, words, text);
}

// Where the user's own configuration is faster than what is chosen, why.
void AddFasterOwn(const Tuning& tuning, std::string& text) {
  if (!tuning.own || !tuning.own->refused.empty() || tuning.result.best.empty()) return;
  const TuneTrial& own = *tuning.own;
  const TuneTrial& best = tuning.result.best[0].trial;
  if (!ft::compiler::fits(own, tuning.request) || own.tokens != best.tokens || own.seconds >= best.seconds)
    return;
  for (const ft::compiler::TuneLayout& layout : tuning.space.layouts) {
    if (!layout.changesBits || layout.strategy != tuning.request.base.strategy || layout.mesh != own.mesh)
      continue;
    text += fmt::format(
        "\nyours is faster than row 1, and changes bits, which is never chosen: --strategy={} --mesh={} "
        "chooses these bits\n",
        layout.strategy, ft::MeshText(layout.mesh));
    return;
  }
  text +=
      "\nyours is faster than row 1: the table has no point with all of its settings, or it was not tried\n";
}

// What a reader has to know of the rows.
void AddRemarks(const Tuning& tuning, std::string& text) {
  const auto& result = tuning.result;
  if (!result.best.empty() && result.boundSeconds > 0)
    text += fmt::format(
        "\nthe kernels alone, of what was compiled, take {:.2f} ms and more; the best is {:.1f}% above\n",
        result.boundSeconds * 1e3, 100 * (result.best[0].trial.seconds / result.boundSeconds - 1));
  if (!tuning.space.batchKeeper.empty())
    text += fmt::format("\nthe batch of a rank stays as the model has it: {}\n", tuning.space.batchKeeper);
  else if (tuning.space.splits.size() > 1)
    text +=
        "\nother splits of the batch take the same sequences a step and round in another order; dropout "
        "draws others\n";
}

void AddRejections(const Tuning& tuning, std::string& text) {
  if (tuning.result.rejections.empty()) return;
  text += "\nnot chosen\n";
  for (const auto& rejection : tuning.result.rejections)
    fmt::format_to(std::back_inserter(text), "  {:>9}  {}: {}\n", ft::Grouped(rejection.points),
                   rejection.what, rejection.why);
}

std::string One(const Tuning& tuning) {
  const auto& result = tuning.result;
  std::string text = Head(tuning) + Counts(tuning);
  if (result.best.empty())
    text += result.beside.empty() ? "nothing fits\n" : "nothing fits that keeps the bits\n";
  if (!result.best.empty() || !result.beside.empty())
    text += fmt::format("\n  {:>5}  {:>10}  {:>11}  {:>5}  {:>9}  {:>8}  {}\n", "", "step, ms", "tokens/s",
                        "MFU", "memory", "exposed", "settings");
  AddOwn(tuning, text);
  for (size_t i = 0; i < result.best.size(); ++i)
    AddRow(fmt::format("{}", i + 1), tuning, result.best[i].trial, Words(tuning, result.best[i].point), text);
  if (!result.beside.empty()) text += "\nwould change bits, so never chosen\n";
  for (const TuneRow& row : result.beside) AddRow("", tuning, row.trial, Words(tuning, row.point), text);
  if (result.front.size() > 1) text += "\nless memory for more time\n";
  for (const TuneRow& row : result.front)
    if (result.front.size() > 1) AddRow("", tuning, row.trial, Words(tuning, row.point), text);
  AddFasterOwn(tuning, text);
  AddRemarks(tuning, text);
  AddRejections(tuning, text);
  return text;
}

// How far it scales: a row for each number of ranks.
std::string ScalingText(const TuneCommand& command, const std::vector<Tuning>& tunings) {
  const Tuning& first = tunings[0];
  const bool strong = first.request.globalBatch != 0;
  std::string text =
      fmt::format("{} on {}: {} scaling\n\n  {:>7}  {:>10}  {:>12}  {:>10}  {:>14}  settings\n",
                  command.settings.model, first.request.base.target.name(),
                  strong ? "strong (--global-batch stays)" : "weak (a rank's sequences stay)", "ranks",
                  "step, ms", "tokens/s", "efficiency", "exposed");
  double per_rank = 0;
  int shows = 0;
  for (const Tuning& tuning : tunings) {
    const int ranks = tuning.request.base.worldSize;
    if (tuning.result.best.empty()) {
      fmt::format_to(std::back_inserter(text), "  {:>7}  {}\n", ranks,
                     tuning.refused.empty() ? NothingFits(tuning.space, tuning.result) : tuning.refused);
      continue;
    }
    const TuneRow& row = tuning.result.best[0];
    const Figures figures = FiguresOf(tuning, row.trial);
    const double of_rank = figures.tokens_per_s / ranks;
    if (per_rank == 0) per_rank = of_rank;
    const double exposed = row.trial.exposedSeconds / row.trial.seconds;
    if (shows == 0 && exposed >= kShows) shows = ranks;
    fmt::format_to(std::back_inserter(text),
                   "  {:>7}  {:>10.2f}  {:>12.0f}  {:>9.1f}%  {:>8.2f} ({:2.0f}%)  {}\n", ranks,
                   row.trial.seconds * 1e3, figures.tokens_per_s, 100 * of_rank / per_rank,
                   row.trial.exposedSeconds * 1e3, 100 * exposed, Words(tuning, row.point));
  }
  if (per_rank == 0) return text;
  text += shows == 0
              ? "\ncommunication stays hidden: less than 5% of a step at each of them\n"
              : fmt::format("\ncommunication shows, with 5% of a step and more, from {} ranks on\n", shows);
  return text;
}

}  // namespace

Figures FiguresOf(const Tuning& tuning, const TuneTrial& trial) {
  const auto& base = tuning.request.base;
  Figures figures;
  if (trial.seconds == 0) return figures;
  figures.tokens_per_s = trial.tokens * base.worldSize / trial.seconds;
  const double peak = ft::RateOf(base.target, base.computeType()).peak();
  figures.mfu = peak > 0 ? trial.modelFlops / (trial.seconds * peak) : 0;
  return figures;
}

std::string TuneText(const TuneCommand& command, const std::vector<Tuning>& tunings) {
  return tunings.size() == 1 ? One(tunings[0]) : ScalingText(command, tunings);
}

std::string SpaceText(const Tuning& tuning) {
  const auto& space = tuning.space;
  std::string text =
      Head(tuning) + fmt::format("{} points: every combination of\n", ft::Grouped(space.size()));
  const auto line = [&](const char* title, const std::string& values) {
    fmt::format_to(std::back_inserter(text), "  {:<14} {}\n", title, values);
  };
  const auto join = [](const auto& items, auto show) {
    std::string joined;
    for (const auto& item : items) joined += (joined.empty() ? "" : "; ") + show(item);
    return joined;
  };
  line("layout", join(space.layouts, [](const auto& layout) {
         return fmt::format("{} {}{}", layout.strategy, ft::MeshText(layout.mesh),
                            layout.changesBits ? " (changes bits)" : "");
       }));
  line("batch", join(space.splits, [](const auto& split) {
         return fmt::format("{} x {} micro-step{}", split.batch, split.microSteps,
                            split.microSteps == 1 ? "" : "s");
       }));
  const auto same = [](const std::string& word) { return word; };
  line("remat", join(space.remats, same));
  line("offload", join(space.offloads, same));
  line("wrap", join(space.wraps, [](const auto& wrap) {
         return fmt::format("{} with persistence {}", wrap.wrap, wrap.persistenceThreshold);
       }));
  line("schedule", join(space.schedules, [](const auto& schedule) {
         return fmt::format(
             "{}, limit {}{}", schedule.prefetch, schedule.limitAllGathers,
             schedule.bucketMb > 0 ? fmt::format(", buckets {:g} MiB", schedule.bucketMb) : "");
       }));
  if (!space.batchKeeper.empty()) line("batch stays:", space.batchKeeper);
  return text;
}

}  // namespace ftc
